"""PyTorch allocates until it is refused, frees, goes on, and limits itself. argv[1]: the cap in bytes. The allocator is
whatever PYTORCH_ALLOC_CONF says. No import of ours but the reporting."""
import gc
import os
import sys

import torch

import report

BLOCK = 64 << 20
cap = int(sys.argv[1])
async_backend = "cudaMallocAsync" in os.environ.get("PYTORCH_ALLOC_CONF", "")


def gib(size):
    return "%.2f GiB" % (size / 2**30)


def allocate_until_refused(most):
    """(number of blocks, the error's text, its type); the blocks are given to `blocks`."""
    try:
        while len(blocks) < most:
            blocks.append(torch.empty(BLOCK, dtype=torch.uint8, device="cuda"))
    except Exception as error:  # which one is what is being tested
        return len(blocks), str(error), type(error)
    return len(blocks), "", type(None)


def give_back():
    blocks.clear()
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.synchronize()


blocks = [torch.empty(1 << 20, device="cuda")]
give_back()
report.fact("torch", torch.__version__)
report.fact("backend", torch.cuda.get_allocator_backend())
report.check("the backend is the one asked for", (torch.cuda.get_allocator_backend() == "cudaMallocAsync") == async_backend)
total = torch.cuda.get_device_properties(0).total_memory
report.check("device properties show the cap", total == cap, total)
report.check("mem_get_info shows the cap", torch.cuda.mem_get_info()[1] == cap, torch.cuda.mem_get_info())
report.ready("start")

count, text, kind = allocate_until_refused(2 * cap // BLOCK)
report.fact("obtained_bytes", count * BLOCK)
report.fact("error", text[:300])
report.check("torch.OutOfMemoryError", kind is torch.OutOfMemoryError, kind)
report.check("at least three quarters of the cap could be used", count * BLOCK >= cap * 3 // 4, count * BLOCK)
if async_backend:
    # This backend words it by itself: "Allocation on device 0 would exceed allowed memory. (out of memory)".
    report.check("the text says out of memory", "out of memory" in text, text)
    limit_lines = [line for line in text.splitlines() if line.startswith("Device limit")]
    report.check("the text's device limit is the cap", any(gib(cap) in line for line in limit_lines), text)
else:
    report.check("the text says CUDA out of memory", "CUDA out of memory" in text, text)
    report.check("the text's capacity is the cap", "total capacity of " + gib(cap) in text, text)
free, total = torch.cuda.mem_get_info()
report.check("free is within 0..total when full", 0 <= free <= total == cap, (free, total))
report.ready("full")

give_back()
report.ready("emptied")

try:
    blocks.append(torch.ones(1 << 28, dtype=torch.float32, device="cuda"))  # 1 GiB, written by a kernel
    torch.cuda.synchronize()
    report.check("the next allocation works", float(blocks[0][-1]) == 1.0)
except Exception as error:
    report.check("the next allocation works", False, error)
give_back()

torch.cuda.set_per_process_memory_fraction(0.5)
count, text, kind = allocate_until_refused(2 * cap // BLOCK)
report.fact("half_obtained_bytes", count * BLOCK)
report.check("a fraction of 0.5 is half of the cap", cap // 2 - 2 * BLOCK <= count * BLOCK <= cap // 2, count * BLOCK)
report.check("beyond it: torch.OutOfMemoryError", kind is torch.OutOfMemoryError, kind)
words = gib(cap // 2) if async_backend else gib(cap // 2) + " allowed"
report.check("the text names half of the cap", words in text, text)
report.ready("half")
