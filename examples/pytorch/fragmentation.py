"""PyTorch says that it is out of memory, and that gigabytes are reserved but unallocated. How can that be?

Run: bash examples/pytorch/fragmentation.sh
Look at: "free in the cache" is more than what is asked for, in three pieces that are each too small, and none can go back
to the driver, since each segment holds one small tensor. With expandable segments the free pages themselves go back.
"""
import os

import torch

MIB, GIB = 2**20, 2**30


def take(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


print("pid %d" % os.getpid())
large = [take(GIB) for _ in range(3)]
del large  # three cached segments of 1 GiB
results = [take(64 * MIB) for _ in range(48)]  # cut from them, sixteen from each
kept = results[::16]  # one of sixteen is kept
del results

unallocated = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
free, total = torch.cuda.mem_get_info()
print("tensors %d MiB; free in the cache %d MiB, free on the card %d MiB" %
      (torch.cuda.memory_allocated() / MIB, unallocated / MIB, free / MIB))
try:
    wanted = take(3 * GIB // 2)
    print("1536 MiB: granted; reserved is now %d MiB" % (torch.cuda.memory_reserved() / MIB))
except torch.OutOfMemoryError as error:
    print("1536 MiB: out of memory. PyTorch says: " + next(s for s in str(error).split(". ") if "unallocated" in s))
