"""numba allocates until it is refused, frees and goes on. argv[1]: the cap in bytes."""
import sys

import numba
import numpy
from numba import cuda

import report

BLOCK = 64 << 20
cap = int(sys.argv[1])
report.fact("numba", numba.__version__)
context = cuda.current_context()
info = context.get_memory_info()
report.check("get_memory_info shows the cap", info.total == cap and 0 <= info.free <= info.total, info)
report.ready("start")

blocks, error = [], None
try:
    while len(blocks) < 2 * cap // BLOCK:
        blocks.append(cuda.device_array(BLOCK, dtype=numpy.uint8))
except Exception as caught:  # which one is what is being tested
    error = caught
report.fact("obtained_bytes", len(blocks) * BLOCK)
report.fact("error", "%s: %s" % (type(error).__name__, str(error)[:200]))
report.check("CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_OUT_OF_MEMORY" in str(error) or "code 2" in str(error), repr(error))
report.check("at least three quarters of the cap could be used", len(blocks) * BLOCK >= cap * 3 // 4, len(blocks) * BLOCK)
report.ready("full")

blocks.clear()
context.memory_manager.deallocations.clear()  # numba keeps freed memory for a while
cuda.synchronize()
report.ready("emptied")
numbers = cuda.to_device(numpy.arange(1000))
report.check("numba goes on", int(numbers.copy_to_host().sum()) == 499500)
