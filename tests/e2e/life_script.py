"""Python's ways of making worker processes, each of them a CUDA program by ctypes. Argument: fork, fork-after-use or
spawn. Prints one line of JSON, then READY, and waits."""
import ctypes
import json
import multiprocessing
import os
import sys

PIECE = 256 << 20


def fill(_=None):
    cuda = ctypes.CDLL("libcuda.so.1")
    report = {"pid": os.getpid(), "init": cuda.cuInit(0), "taken": 0}
    context = ctypes.c_void_p()
    device = 0
    report["context"] = cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    cuda.cuCtxSetCurrent(context)
    pointers = []
    while True:
        pointer = ctypes.c_uint64()
        report["result"] = cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(PIECE))
        if report["result"] != 0:
            break
        report["taken"] += 1
        pointers.append(pointer)
    for pointer in pointers:
        cuda.cuMemFree_v2(pointer)
    if report["context"] == 0:
        cuda.cuDevicePrimaryCtxRelease_v2(device)
    return report


def main():
    way = sys.argv[1]
    context = multiprocessing.get_context("spawn" if way == "spawn" else "fork")
    if way != "fork":
        fill()
    with context.Pool(3, maxtasksperchild=2) as pool:
        workers = pool.map(fill, range(6), chunksize=1)
    print("report=" + json.dumps({"workers": workers, "parent": fill()}))
    print("READY", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
