"""I deleted my tensor: why does nvidia-smi still show its memory, and what gives it back?

Run: bash examples/pytorch/freeing.sh
Look at: del and None give memory back to PyTorch's cache, empty_cache gives whole free segments back to the driver, and
one small tensor in a big segment keeps all of it. The event log has a "release" only where the driver got something back.
"""
import os
import time

import torch

MIB, GIB = 2**20, 2**30


def show(moment):
    free, total = torch.cuda.mem_get_info()
    print("%-46s allocated %5d  reserved %5d  used %5d MiB" %
          (moment, torch.cuda.memory_allocated() / MIB, torch.cuda.memory_reserved() / MIB, (total - free) / MIB))


def cost(emptied):
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(200):
        tensor = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
        del tensor
        if emptied:
            torch.cuda.empty_cache()
    return (time.perf_counter() - started) / 200 * 1e6


print("pid %d" % os.getpid())
a = torch.empty(GIB, dtype=torch.uint8, device="cuda")
b = torch.empty(GIB, dtype=torch.uint8, device="cuda")
show("two tensors of 1 GiB")
same = a
del a
show("del a, which has a second name")
del same
show("del same, its last name")
b = None
show("b = None")
torch.cuda.empty_cache()
show("empty_cache()")
big = torch.empty(GIB, dtype=torch.uint8, device="cuda")
del big
small = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
torch.cuda.empty_cache()
show("64 MiB cut from a cached GiB, empty_cache()")
del small
torch.cuda.empty_cache()
show("del small, empty_cache()")

kept, emptied = cost(False), cost(True)
print("64 MiB taken and freed: %.1f us from the cache, %.1f us with empty_cache() each time" % (kept, emptied))
