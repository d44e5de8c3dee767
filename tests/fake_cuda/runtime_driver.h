// How the fake CUDA runtime reaches the driver, the way NVIDIA's does: dlopen of libcuda.so.1, exactly one dlsym, for
// cuGetProcAddress_v2, and everything else through that pointer. Also the runtime's per-thread state.
#pragma once

#include "tests/fake_cuda/api.h"

// Field, base name, version and default-stream flavour to ask for, and the spelling whose type that is.
#define FAKE_RUNTIME_IMPORTS(X)                                                        \
  X(init, "cuInit", 2000, 1, cuInit)                                                   \
  X(driver_version, "cuDriverGetVersion", 2020, 1, cuDriverGetVersion)                 \
  X(device_count, "cuDeviceGetCount", 2000, 1, cuDeviceGetCount)                       \
  X(device_name, "cuDeviceGetName", 2000, 1, cuDeviceGetName)                          \
  X(device_uuid, "cuDeviceGetUuid", 11040, 1, cuDeviceGetUuid_v2)                      \
  X(device_total, "cuDeviceTotalMem", 3020, 1, cuDeviceTotalMem_v2)                    \
  X(retain, "cuDevicePrimaryCtxRetain", 7000, 1, cuDevicePrimaryCtxRetain)             \
  X(reset, "cuDevicePrimaryCtxReset", 11000, 1, cuDevicePrimaryCtxReset_v2)            \
  X(get_current, "cuCtxGetCurrent", 4000, 1, cuCtxGetCurrent)                          \
  X(set_current, "cuCtxSetCurrent", 4000, 1, cuCtxSetCurrent)                          \
  X(current_device, "cuCtxGetDevice", 2000, 1, cuCtxGetDevice)                         \
  X(synchronise, "cuCtxSynchronize", 2000, 1, cuCtxSynchronize)                        \
  X(allocate, "cuMemAlloc", 3020, 1, cuMemAlloc_v2)                                    \
  X(allocate_pitch, "cuMemAllocPitch", 3020, 1, cuMemAllocPitch_v2)                    \
  X(allocate_managed, "cuMemAllocManaged", 6000, 1, cuMemAllocManaged)                 \
  X(release, "cuMemFree", 3020, 1, cuMemFree_v2)                                       \
  X(host_allocate, "cuMemHostAlloc", 2020, 1, cuMemHostAlloc)                          \
  X(host_release, "cuMemFreeHost", 2000, 1, cuMemFreeHost)                             \
  X(info, "cuMemGetInfo", 3020, 1, cuMemGetInfo_v2)                                    \
  X(allocate_async, "cuMemAllocAsync", 11020, 1, cuMemAllocAsync)                      \
  X(allocate_async_ptsz, "cuMemAllocAsync", 11020, 2, cuMemAllocAsync_ptsz)            \
  X(from_pool, "cuMemAllocFromPoolAsync", 11020, 1, cuMemAllocFromPoolAsync)           \
  X(from_pool_ptsz, "cuMemAllocFromPoolAsync", 11020, 2, cuMemAllocFromPoolAsync_ptsz) \
  X(release_async, "cuMemFreeAsync", 11020, 1, cuMemFreeAsync)                         \
  X(release_async_ptsz, "cuMemFreeAsync", 11020, 2, cuMemFreeAsync_ptsz)               \
  X(default_pool, "cuDeviceGetDefaultMemPool", 11020, 1, cuDeviceGetDefaultMemPool)    \
  X(pool_trim, "cuMemPoolTrimTo", 11020, 1, cuMemPoolTrimTo)                           \
  X(pool_set, "cuMemPoolSetAttribute", 11020, 1, cuMemPoolSetAttribute)                \
  X(array_create, "cuArray3DCreate", 3020, 1, cuArray3DCreate_v2)                      \
  X(array_destroy, "cuArrayDestroy", 2000, 1, cuArrayDestroy)                          \
  X(mipmap_create, "cuMipmappedArrayCreate", 5000, 1, cuMipmappedArrayCreate)          \
  X(mipmap_destroy, "cuMipmappedArrayDestroy", 5000, 1, cuMipmappedArrayDestroy)       \
  X(stream_create, "cuStreamCreate", 2000, 1, cuStreamCreate)                          \
  X(stream_destroy, "cuStreamDestroy", 4000, 1, cuStreamDestroy_v2)                    \
  X(stream_synchronise, "cuStreamSynchronize", 2000, 1, cuStreamSynchronize)           \
  X(copy, "cuMemcpy", 4000, 1, cuMemcpy)                                               \
  X(copy_to_device, "cuMemcpyHtoD", 3020, 1, cuMemcpyHtoD_v2)                          \
  X(copy_to_host, "cuMemcpyDtoH", 3020, 1, cuMemcpyDtoH_v2)                            \
  X(copy_on_device, "cuMemcpyDtoD", 3020, 1, cuMemcpyDtoD_v2)                          \
  X(fill, "cuMemsetD8", 3020, 1, cuMemsetD8_v2)

namespace fake_runtime {

struct Imports {
#define FAKE_FIELD(field, name, version, flags, spelling) decltype(&::spelling) field = nullptr;
  FAKE_RUNTIME_IMPORTS(FAKE_FIELD)
#undef FAKE_FIELD
};

// The driver's functions once it is loaded and cuInit has been called; *error (a cudaError_t) says why not.
const Imports* driver(int* error);

// Makes sure that the calling thread has a context: the current one, or the primary one of its device.
const Imports* driver_in_context(int* error);

// Retains the device's primary context if this runtime has not done so yet, and makes it the thread's. A cudaError_t.
int make_primary_current(const Imports& imports, int device);
// After the context was reset.
void forget_primary(int device);

int& thread_device();
int& thread_last_error();

// Remembers a failure for cudaGetLastError.
int finish(int error);

// Runs body(imports), which returns a CUresult, with the driver loaded and a context current.
template <class Body>
int in_context(Body body) {
  int error = 0;
  const Imports* const imports = driver_in_context(&error);
  return finish(imports == nullptr ? error : static_cast<int>(body(*imports)));
}

template <class Body>
int with_driver(Body body) {
  int error = 0;
  const Imports* const imports = driver(&error);
  return finish(imports == nullptr ? error : static_cast<int>(body(*imports)));
}

}  // namespace fake_runtime
