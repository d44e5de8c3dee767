// A program of the CUDA 11 days: links nothing that an old driver lacks.
#include <dlfcn.h>

#include <cstdio>

#include "shim/driver/cuda.h"

int main() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  std::printf("pools=%s\n", dlsym(driver, "cuMemAllocAsync") == nullptr ? "absent" : "present");
  const auto init = reinterpret_cast<decltype(&::cuInit)>(dlsym(driver, "cuInit"));
  const auto retain =
      reinterpret_cast<decltype(&::cuDevicePrimaryCtxRetain)>(dlsym(driver, "cuDevicePrimaryCtxRetain"));
  const auto set = reinterpret_cast<decltype(&::cuCtxSetCurrent)>(dlsym(driver, "cuCtxSetCurrent"));
  const auto alloc = reinterpret_cast<decltype(&::cuMemAlloc_v2)>(dlsym(driver, "cuMemAlloc_v2"));
  CUcontext context = nullptr;
  init(0);
  retain(&context, 0);
  set(context);
  CUdeviceptr p = 0;
  CUresult result = CUDA_SUCCESS;
  for (int i = 0; i < 100 && result == CUDA_SUCCESS; ++i) result = alloc(&p, 100 << 20);
  std::printf("result=%d\n", static_cast<int>(result));
}
