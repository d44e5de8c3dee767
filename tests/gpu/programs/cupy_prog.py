"""CuPy allocates until it is refused. argv[1]: the cap in bytes; argv[2]: default, async or managed (the pool)."""
import sys

import cupy

import report

BLOCK = 64 << 20
MOST_MANAGED = 8 << 30  # never more managed memory than a card has free
cap, mode = int(sys.argv[1]), sys.argv[2]
report.fact("cupy", cupy.__version__)
pool = cupy.get_default_memory_pool()
if mode == "async":
    pool = cupy.cuda.MemoryAsyncPool()
    cupy.cuda.set_allocator(pool.malloc)
elif mode == "managed":
    pool = cupy.cuda.MemoryPool(cupy.cuda.malloc_managed)
    cupy.cuda.set_allocator(pool.malloc)

free, total = cupy.cuda.runtime.memGetInfo()
report.check("memGetInfo shows the cap", total == cap and 0 <= free <= total, (free, total))
report.check("device properties show the cap", cupy.cuda.runtime.getDeviceProperties(0)["totalGlobalMem"] == cap)
cupy.cuda.runtime.deviceSynchronize()
report.ready("start")

blocks, error = [], None
try:
    while len(blocks) * BLOCK < min(2 * cap, MOST_MANAGED):
        blocks.append(cupy.empty(BLOCK, dtype=cupy.uint8))
except Exception as caught:  # which one is what is being tested
    error = caught
obtained = len(blocks) * BLOCK
report.fact("obtained_bytes", obtained)
report.fact("error", "%s: %s" % (type(error).__name__, str(error)[:200]))
is_out_of_memory = isinstance(error, cupy.cuda.memory.OutOfMemoryError) or "cudaErrorMemoryAllocation" in str(error)
report.check("refused as out of memory", is_out_of_memory, repr(error))
report.check("between three quarters of the cap and the cap was given", cap * 3 // 4 <= obtained <= cap, obtained)
cupy.cuda.runtime.deviceSynchronize()
report.ready("full")

blocks.clear()
cupy.cuda.runtime.deviceSynchronize()
pool.free_all_blocks()
report.ready("emptied")
again = cupy.arange(1 << 20, dtype=cupy.int64)
report.check("CuPy goes on computing", int(again.sum()) == (1 << 20) * ((1 << 20) - 1) // 2)
