// The plugin of plugins.cpp: linked against libcuda like any library, and makes sure of a context by itself, since in a
// namespace of its own it has a driver of its own.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

namespace {

CUresult use_a_context() {
  CUcontext context = nullptr;
  CUresult result = cuInit(0);
  if (result == CUDA_SUCCESS) result = cuCtxGetCurrent(&context);
  if (result != CUDA_SUCCESS || context != nullptr) return result;
  result = cuDevicePrimaryCtxRetain(&context, 0);
  return result != CUDA_SUCCESS ? result : cuCtxSetCurrent(context);
}

}  // namespace

extern "C" int gpucap_test_take(unsigned long long* out, size_t bytes) {
  const CUresult result = use_a_context();
  return result != CUDA_SUCCESS ? result : cuMemAlloc_v2(out, bytes);
}

extern "C" int gpucap_test_give_back(unsigned long long value) { return cuMemFree_v2(value); }
