// The CUDA driver as the benchmarks reach it: libcuda.so.1 is opened at run time and its functions are looked up by
// name, so that one program runs on a card, on the fake driver and under the preload. Whatever fails ends the program
// with a line that names the call: a benchmark has no use for errors.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace gpucap::bench {

#define GPUCAP_BENCH_FUNCTIONS(X) \
  X(cuInit)                       \
  X(cuGetProcAddress_v2)          \
  X(cuDeviceGet)                  \
  X(cuDevicePrimaryCtxRetain)     \
  X(cuDevicePrimaryCtxRelease_v2) \
  X(cuCtxSetCurrent)              \
  X(cuCtxSynchronize)             \
  X(cuMemGetInfo_v2)              \
  X(cuMemAlloc_v2)                \
  X(cuMemFree_v2)                 \
  X(cuMemAllocAsync)              \
  X(cuMemFreeAsync)               \
  X(cuMemcpyHtoD_v2)              \
  X(cuStreamCreate)               \
  X(cuStreamDestroy_v2)           \
  X(cuStreamSynchronize)          \
  X(cuModuleLoadData)             \
  X(cuModuleGetFunction)          \
  X(cuModuleUnload)               \
  X(cuLaunchKernel)               \
  X(cuGraphCreate)                \
  X(cuGraphDestroy)               \
  X(cuGraphAddKernelNode_v2)      \
  X(cuGraphInstantiateWithFlags)  \
  X(cuGraphExecDestroy)           \
  X(cuGraphLaunch)

struct Driver {
#define GPUCAP_BENCH_FIELD(name) decltype(&::name) name;
  GPUCAP_BENCH_FUNCTIONS(GPUCAP_BENCH_FIELD)
#undef GPUCAP_BENCH_FIELD
};

// Opened and looked up at the first call.
const Driver& driver();

// Ends the program unless the driver was content.
void check(CUresult result, const char* what);

// cuInit, the primary context of device 0, made current for the calling thread. The context is kept for good.
CUcontext start_driver();

// An empty kernel, in whatever form this driver takes: PTX, or the text that the fake driver reads.
CUmodule load_empty_kernel(CUfunction* kernel);

// NVML, its first device and that device's processes, as a program that watches itself would start it. Without NVML:
// nothing.
void start_nvml();

uint64_t now_ns();  // CLOCK_MONOTONIC, the same for all processes

}  // namespace gpucap::bench
