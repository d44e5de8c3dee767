// A library with the CUDA runtime linked into it statically, as nvcc links it by default: its cudaMalloc is its own and
// seen by nobody, and reaches the driver by dlopen, dlsym and cuGetProcAddress.
#include <cstddef>

extern "C" int cudaMalloc(void** pointer, size_t bytes);

extern "C" __attribute__((visibility("default"))) int plugin_take(size_t bytes, int most, int* result) {
  int taken = 0;
  void* pointer = nullptr;
  while (taken < most && (*result = cudaMalloc(&pointer, bytes)) == 0) ++taken;
  return taken;
}
