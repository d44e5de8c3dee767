"""Does the cap hold for CuPy and its pools?

Run: gpucap run --limit 4G -- python3 examples/pytorch/other_cupy.py
Look at: the pool keeps what was freed, as PyTorch's cache does, until free_all_blocks().
"""
import cupy

MIB = 2**20


def show(moment):
    pool = cupy.get_default_memory_pool()
    free, total = cupy.cuda.runtime.memGetInfo()
    print("%-18s in arrays %4d  in the pool %4d  used %4d of %d MiB" %
          (moment, pool.used_bytes() / MIB, pool.total_bytes() / MIB, (total - free) / MIB, total / MIB))


print("CuPy %s" % cupy.__version__)
arrays = []
try:
    while True:
        arrays.append(cupy.empty(64 * MIB, dtype=cupy.uint8))
except cupy.cuda.memory.OutOfMemoryError as error:
    print("after %d MiB: %s" % (len(arrays) * 64, str(error)[:60]))
show("full")
del arrays
show("arrays deleted")
cupy.get_default_memory_pool().free_all_blocks()
show("free_all_blocks()")
