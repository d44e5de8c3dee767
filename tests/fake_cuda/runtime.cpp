// The fake CUDA runtime: device choice, information, errors. Allocation is in runtime_memory.cpp. Built twice, as
// libcudart.so.12 and libcudart.so.13.
#include "tests/fake_cuda/runtime.h"

#include <utility>

#include "tests/fake_cuda/runtime_driver.h"

using namespace fake_runtime;

namespace {

constexpr int kInvalidValue = 1;
constexpr int kInvalidDevice = 101;

int properties(DevicePropertiesStart* out, int device) {
  return with_driver([&](const Imports& driver) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUuuid uuid{};
    CUresult result = driver.device_name(out->name, sizeof(out->name), device);
    if (result == CUDA_SUCCESS) result = driver.device_uuid(&uuid, device);
    if (result == CUDA_SUCCESS) __builtin_memcpy(out->uuid, &uuid, sizeof(out->uuid));
    return result == CUDA_SUCCESS ? driver.device_total(&out->total_global_mem, device) : result;
  });
}

}  // namespace

FAKE_CUDART int cudaGetDeviceCount(int* count) {
  const int error = with_driver([&](const Imports& driver) { return driver.device_count(count); });
  if (error != 0 && count != nullptr) *count = 0;
  return error;
}
FAKE_CUDART int cudaGetDevice(int* device) {
  return with_driver([&](const Imports& driver) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (driver.current_device(device) != CUDA_SUCCESS) *device = thread_device();
    return CUDA_SUCCESS;
  });
}
FAKE_CUDART int cudaSetDevice(int device) {
  int count = 0;
  const int error = cudaGetDeviceCount(&count);
  if (error != 0) return error;
  if (device < 0 || device >= count) return finish(kInvalidDevice);
  thread_device() = device;
  return with_driver(
      [&](const Imports& driver) { return static_cast<CUresult>(make_primary_current(driver, device)); });
}
FAKE_CUDART int cudaDeviceReset() {
  int device = 0;
  const int error = cudaGetDevice(&device);
  if (error != 0) return error;
  forget_primary(device);
  return with_driver([&](const Imports& driver) {
    const CUresult result = driver.reset(device);
    return result == CUDA_SUCCESS ? driver.set_current(nullptr) : result;
  });
}
FAKE_CUDART int cudaDeviceSynchronize() {
  return in_context([](const Imports& driver) { return driver.synchronise(); });
}
FAKE_CUDART int cudaStreamCreate(CUstream* stream) {
  return in_context([&](const Imports& driver) { return driver.stream_create(stream, 0); });
}
FAKE_CUDART int cudaStreamDestroy(CUstream stream) {
  return in_context([&](const Imports& driver) { return driver.stream_destroy(stream); });
}
FAKE_CUDART int cudaStreamSynchronize(CUstream stream) {
  return in_context([&](const Imports& driver) { return driver.stream_synchronise(stream); });
}
FAKE_CUDART int cudaMemGetInfo(size_t* free, size_t* total) {
  return in_context([&](const Imports& driver) { return driver.info(free, total); });
}
FAKE_CUDART int cudaGetDeviceProperties(DevicePropertiesStart* out, int device) { return properties(out, device); }
FAKE_CUDART int cudaGetDeviceProperties_v2(DevicePropertiesStart* out, int device) { return properties(out, device); }
FAKE_CUDART int cudaDriverGetVersion(int* version) {
  return with_driver([&](const Imports& driver) { return driver.driver_version(version); });
}
FAKE_CUDART int cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return finish(kInvalidValue);
  *version = FAKE_CUDART_VERSION;
  return 0;
}
FAKE_CUDART int cudaGetLastError() { return std::exchange(thread_last_error(), 0); }
FAKE_CUDART int cudaPeekAtLastError() { return thread_last_error(); }
FAKE_CUDART const char* cudaGetErrorString(int error) {
  switch (error) {
    case 0:
      return "no error";
    case kInvalidValue:
      return "invalid argument";
    case 2:
      return "out of memory";
    case 3:
      return "initialization error";
    case 35:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case 100:
      return "no CUDA-capable device is detected";
    case kInvalidDevice:
      return "invalid device ordinal";
    default:
      return "unrecognized error code";
  }
}
