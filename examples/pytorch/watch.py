"""How do I see how much GPU memory my program uses, and what it used at most?

Run: gpucap run -- python3 examples/pytorch/watch.py
Look at: the columns of one row, which differ by the cache (reserved - allocated) and by the driver's share (context and
libraries), and at the last lines: a peak of some milliseconds is between two samples of nvidia-smi, and gpucap has it.
"""
import json
import os
import subprocess
import threading
import time

import torch

MIB, GIB = 2**20, 2**30


def ask_nvidia_smi(*question):
    return subprocess.check_output(["nvidia-smi", *question, "--format=csv,noheader,nounits"], text=True)


def process_mib():
    """What nvidia-smi says of this process, on all cards together."""
    rows = [row.split(",") for row in ask_nvidia_smi("--query-compute-apps=pid,used_memory").splitlines()]
    return sum(int(used) for pid, used in rows if int(pid) == os.getpid())


def gpucap():
    shown = subprocess.check_output(["gpucap-top", "--once", "--json", "-p", str(os.getpid())])
    return json.loads(shown)["processes"][0]["devices"][0]


def show(moment):
    torch.cuda.synchronize()
    seen = gpucap()
    print("%-22s %9d %8d %7d %10d | %6d %6d" %
          (moment, torch.cuda.memory_allocated() / MIB, torch.cuda.memory_reserved() / MIB,
           torch.cuda.max_memory_allocated() / MIB, process_mib(), seen["used_bytes"] / MIB, seen["driver_bytes"] / MIB))


print("%-22s %9s %8s %7s %10s | %6s %6s" % ("MiB", "allocated", "reserved", "peak", "nvidia-smi", "gpucap", "driver"))
torch.zeros(1, device="cuda")
show("one number")
net = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 7), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(8), torch.nn.Flatten(),
                          torch.nn.Linear(4096, 4096), torch.nn.Linear(4096, 10)).cuda()
show("a model")
net(torch.randn(64, 3, 224, 224, device="cuda")).sum().backward()
show("one step")
net.zero_grad(set_to_none=True)
torch.cuda.empty_cache()
show("grads and cache gone")

# The peak. It comes right after one sample, so that the next is almost a second away.
samples = []


def sample_every_second():
    while True:
        samples.append(int(ask_nvidia_smi("-i", "0", "--query-gpu=memory.used")))
        time.sleep(1)


threading.Thread(target=sample_every_second, daemon=True).start()
while len(samples) < 2:
    time.sleep(0.01)
started = time.perf_counter()
spike = torch.empty(6 * GIB, dtype=torch.uint8, device="cuda")
time.sleep(0.01)
del spike
torch.cuda.empty_cache()
print("a peak of 6 GiB that lasted %.0f ms" % ((time.perf_counter() - started) * 1000))
while len(samples) < 4:
    time.sleep(0.01)
print("nvidia-smi, sampled every second: %s MiB" % ", ".join(str(sample) for sample in samples[:4]))
print("gpucap-top: peak %d MiB" % (gpucap()["peak_bytes"] / MIB))
