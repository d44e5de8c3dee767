"""What do the settings of PyTorch's allocator change under a cap?

Run: bash examples/pytorch/allocators.sh
Look at: the same tensors in the same order, and how much each setting reserved for them, how often it had to give its
cache back and ask again (retries), and how often it failed all the same (out of memory).
"""
import os
import random

import torch

MIB = 2**20
random.seed(1)
# Garbage collection works only with a fraction set; 1.0 of the card that PyTorch sees is the cap.
torch.cuda.set_per_process_memory_fraction(1.0)

live, failed = [], 0
for step in range(400):  # the last six tensors live, of sizes that never repeat
    if len(live) == 6:
        live.pop(0)
    try:
        live.append(torch.empty(random.randrange(64 * MIB, 512 * MIB), dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError:
        failed += 1
        live.pop(0)
torch.cuda.synchronize()

stats = torch.cuda.memory_stats()
print("%s (backend %s)" % (os.environ.get("PYTORCH_ALLOC_CONF") or "default", torch.cuda.get_allocator_backend()))
print("  peak in tensors %d MiB, peak reserved %d MiB, retries %d, out of memory %d" %
      (torch.cuda.max_memory_allocated() / MIB, torch.cuda.max_memory_reserved() / MIB, stats.get("num_alloc_retries", 0), failed))
