"""Which versions does the output in this guide come from, and which names of older guides are gone?

Run: python3 examples/pytorch/versions.py
Look at: the names that say "not there". What replaces them is in the guide.
"""
import importlib.metadata
import platform
import subprocess

import torch

print(subprocess.check_output(["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"],
                              text=True).strip())
print(subprocess.check_output(["gpucap", "--version"], text=True).strip())
print("Python %s, PyTorch %s, CUDA %s" % (platform.python_version(), torch.__version__, torch.version.cuda))
for package in ("jax", "cupy-cuda12x", "cupy-cuda13x", "ipykernel", "jupyter_client"):
    try:
        print("%s %s" % (package, importlib.metadata.version(package)))
    except importlib.metadata.PackageNotFoundError:
        pass

for name in ("memory_profiler", "memory_utils", "memory_allocated", "memory_reserved", "memory_summary", "memory_stats",
             "memory_snapshot", "device_memory_used", "OutOfMemoryError"):
    print("torch.cuda.%-20s %s" % (name, "there" if hasattr(torch.cuda, name) else "not there"))
for name in ("_record_memory_history", "_dump_snapshot"):
    print("torch.cuda.memory.%-22s %s" % (name, "there" if hasattr(torch.cuda.memory, name) else "not there"))
