// A library as programs load them with dlopen: it has functions of its own whose names look like CUDA's, asks the
// loader from its own place, and (built with WITH_DRIVER) is linked with the driver. Knows nothing of gpucap.
#include "tests/e2e/symbols_look.h"

#define PLUGIN_EXPORT extern "C" __attribute__((visibility("default")))

PLUGIN_EXPORT int curl_easy_init() { return 1001; }
PLUGIN_EXPORT int cublasCreate_v2() { return 1002; }
PLUGIN_EXPORT int cu_own() { return 1003; }
PLUGIN_EXPORT int cudaOwn() { return 1004; }

PLUGIN_EXPORT void plugin_look_around(const char* who, void* own) { look::look_around(who, own); }

#ifdef WITH_DRIVER
#include "shim/driver/cuda.h"

// Takes pieces until it is refused; how many it got.
PLUGIN_EXPORT int plugin_take(size_t bytes, int most, int* result) {
  CUcontext context = nullptr;
  cuInit(0);
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  int taken = 0;
  CUdeviceptr pointer = 0;
  while (taken < most && (*result = static_cast<int>(cuMemAlloc_v2(&pointer, bytes))) == 0) ++taken;
  return taken;
}
#else
// Not the driver's: a function of the same name in a library that is not CUDA's.
PLUGIN_EXPORT int cuMemAlloc_v2() { return 4242; }
#endif
