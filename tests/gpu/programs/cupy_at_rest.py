"""CuPy with cuBLAS, cuFFT and kernels of its own under a cap, at rest at three moments. argv[1]: the cap in bytes."""
import sys

import cupy

import report

cap = int(sys.argv[1])
report.fact("cupy", cupy.__version__)
report.check("memGetInfo shows the cap", cupy.cuda.runtime.memGetInfo()[1] == cap)


def rest(label):
    cupy.cuda.runtime.deviceSynchronize()
    report.ready(label)


a = cupy.ones((2048, 2048), dtype=cupy.float32)
rest("start")
report.check("the product is right", float((a @ a)[0, 0]) == 2048.0)
rest("after cuBLAS")
report.check("a kernel made at run time works", float(cupy.ElementwiseKernel("float32 x", "float32 y", "y = 2 * x", "twice")(a)[0, 0]) == 2.0)
report.check("a transform works", abs(complex(cupy.fft.fft2(a)[0, 0]).real - 2048.0 * 2048.0) < 1.0)
rest("after a kernel and cuFFT")
del a
cupy.get_default_memory_pool().free_all_blocks()
rest("emptied")
