// The CUDA runtime as a program uses it: the functions that the tests call, and a struct to call them through from
// elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/fake_cuda/runtime.h"

extern "C" {
int cudaMalloc(void** pointer, size_t bytes);
int cudaMallocAsync(void** pointer, size_t bytes, void* stream);
int cudaFree(void* pointer);
int cudaFreeAsync(void* pointer, void* stream);
int cudaGetLastError();
int cudaPeekAtLastError();
int cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes);
int cudaGetDeviceProperties(fake_runtime::DevicePropertiesStart* properties, int device);
int cudaRuntimeGetVersion(int* version);
int cudaDeviceSynchronize();
}

// One user of one runtime.
struct RuntimeUser {
  int (*version)();
  int (*allocate)(void** pointer, size_t bytes);
  int (*allocate_async)(void** pointer, size_t bytes);
  int (*release)(void* pointer);
  int (*release_async)(void* pointer);
  int (*last_error)();
  int (*peek_error)();
  int (*memory)(size_t* free_bytes, size_t* total_bytes);
  size_t (*total_of_properties)();
};

// Each function calls the runtime from the object that this is compiled into.
inline RuntimeUser user_here() {
  return {
      [] {
        int version = 0;
        cudaRuntimeGetVersion(&version);
        return version;
      },
      [](void** pointer, size_t bytes) { return cudaMalloc(pointer, bytes); },
      [](void** pointer, size_t bytes) { return cudaMallocAsync(pointer, bytes, nullptr); },
      [](void* pointer) { return cudaFree(pointer); },
      [](void* pointer) { return cudaFreeAsync(pointer, nullptr) + cudaDeviceSynchronize(); },
      [] { return cudaGetLastError(); },
      [] { return cudaPeekAtLastError(); },
      [](size_t* free_bytes, size_t* total_bytes) { return cudaMemGetInfo(free_bytes, total_bytes); },
      [] {
        fake_runtime::DevicePropertiesStart properties{};
        return cudaGetDeviceProperties(&properties, 0) == 0 ? properties.total_global_mem : 0;
      },
  };
}
