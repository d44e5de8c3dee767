"""How do I limit a process to half of the card: set_per_process_memory_fraction, or a cap?

Run: bash examples/pytorch/limit.sh
Look at: what NVML says in the end. PyTorch's fraction holds for PyTorch's own blocks; the context and what other
libraries take come on top. The cap holds for all of it.
"""
import ctypes
import os
import subprocess
import sys

import torch

MIB, GIB = 2**20, 2**30


def process_mib():
    rows = subprocess.check_output(["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"],
                                   text=True).splitlines()
    return sum(int(used) for pid, used in (row.split(",") for row in rows) if int(pid) == os.getpid())


if "--fraction" in sys.argv:
    torch.cuda.set_per_process_memory_fraction(0.5)
print("PyTorch sees a card of %d B" % torch.cuda.get_device_properties(0).total_memory)

# Another library in the same process, which takes its memory by itself.
runtime = ctypes.CDLL("libcudart.so." + torch.version.cuda.split(".")[0])
torch.cuda.init()
theirs = ctypes.c_void_p()
print("cudaMalloc of 4 GiB by another library: result %d" % runtime.cudaMalloc(ctypes.byref(theirs), ctypes.c_size_t(4 * GIB)))

blocks = []
for size in (256 * MIB, 10 * MIB):
    try:
        while True:
            blocks.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError:
        pass
print("PyTorch got %d B" % torch.cuda.memory_reserved())
print("NVML says that the process holds %d MiB" % process_mib())
