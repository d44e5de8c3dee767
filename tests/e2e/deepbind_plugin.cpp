// A plugin as some frameworks open them: with RTLD_DEEPBIND, linked against the driver.
#include "shim/driver/cuda.h"

extern "C" __attribute__((visibility("default"))) int take_until_refused(unsigned long long bytes, int most,
                                                                         int* taken) {
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return -1;
  cuCtxSetCurrent(context);
  CUdeviceptr p = 0;
  for (*taken = 0; *taken < most; ++*taken) {
    const CUresult result = cuMemAlloc_v2(&p, bytes);
    if (result != CUDA_SUCCESS) return static_cast<int>(result);
  }
  return 0;
}
