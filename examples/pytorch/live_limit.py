"""Can I change the limit of a program that runs?

Run: bash examples/pytorch/live_limit.sh
Look at: the request that is refused, and granted a moment later without a restart; then, with the limit below what the
program holds: nothing is taken away from it, but it gets no more.
"""
import os
import time

import torch

GIB = 2**30
print("pid %d" % os.getpid(), flush=True)


def try_for(gib):
    try:
        return torch.empty(int(gib * GIB), dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        return None


def say(what):
    print("%s; the card has %.1f GiB, %.1f GiB are held" %
          (what, torch.cuda.mem_get_info()[1] / GIB, torch.cuda.memory_reserved() / GIB), flush=True)


data = try_for(5)
say("5 GiB refused" if data is None else "5 GiB granted")
while data is None:
    time.sleep(0.2)
    data = try_for(5)
say("5 GiB granted")

more = try_for(0.25)
while more is not None:
    del more
    torch.cuda.empty_cache()
    time.sleep(0.2)
    more = try_for(0.25)
say("0.25 GiB refused")
