// The exported functions of stream-ordered allocation: pools, allocation and free. Attributes: pool_attributes.cpp.
#include "tests/fake_cuda/context.h"
#include "tests/fake_cuda/graph.h"
#include "tests/fake_cuda/linear.h"
#include "tests/fake_cuda/pool.h"
#include "tests/fake_cuda/stream.h"

namespace fake {
namespace {

bool known(Driver& driver, Pool* pool) { return driver.pools.count(pool) != 0 && !pool->destroyed; }

// In a stream that captures, an allocation becomes a node and takes nothing.
CUresult allocate(Driver& driver, CUdeviceptr* dptr, uint64_t bytes, Pool* pool, CUstream handle, bool per_thread) {
  if (dptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream* const stream = find_stream(driver, handle, per_thread);
  if (stream == nullptr) return handle == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
  if (pool == nullptr) pool = driver.device(stream->context->device)->current_pool;
  if (!known(driver, pool)) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address = 0;
  const CUresult result = stream->capture != nullptr
                              ? capture_allocation(driver, *stream->capture, pool->device, bytes, &address)
                              : allocate_from_pool(driver, pool, bytes, &address);
  if (result == CUDA_SUCCESS) *dptr = address;
  return result;
}

CUresult release(Driver& driver, CUdeviceptr dptr, CUstream handle, bool per_thread) {
  Stream* const stream = find_stream(driver, handle, per_thread);
  if (stream == nullptr) return handle == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture != nullptr) return capture_free(driver, *stream->capture, dptr);
  return free_any(driver, dptr);
}

CUresult create(Driver& driver, CUmemoryPool* out, const CUmemPoolProps* props) {
  if (out == nullptr || props == nullptr) return CUDA_ERROR_INVALID_VALUE;
  PoolMemory memory = PoolMemory::kDevice;
  int device = 0;
  if (props->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    device = props->location.id;
    if (driver.device(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  } else if (props->location.type == CU_MEM_LOCATION_TYPE_INVALID) {
    return CUDA_ERROR_INVALID_VALUE;
  } else {
    memory = PoolMemory::kHost;
  }
  if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_NOT_SUPPORTED;
  Pool* const pool = make_pool(driver, device, memory, props->maxSize);
  pool->shareable = (props->handleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0;
  *out = as_handle(pool);
  return CUDA_SUCCESS;
}

CUresult destroy(Driver& driver, Pool* pool) {
  if (!known(driver, pool)) return CUDA_ERROR_INVALID_VALUE;
  Device& device = *driver.device(pool->device);
  if (pool == device.default_pool) return CUDA_ERROR_INVALID_VALUE;
  if (pool == device.current_pool) device.current_pool = device.default_pool;
  pool->destroyed = true;
  if (pool->blocks.empty()) {
    destroy_pool(driver, pool);
  } else {
    trim_pool(driver, pool, 0);
  }
  return CUDA_SUCCESS;
}

// Only pinned memory of a device has a default pool here.
Device* device_at(Driver& driver, const CUmemLocation* location, CUmemAllocationType type) {
  const bool ours = location != nullptr && location->type == CU_MEM_LOCATION_TYPE_DEVICE;
  return ours && type == CU_MEM_ALLOCATION_TYPE_PINNED ? driver.device(location->id) : nullptr;
}

CUresult set_current_pool(Driver& driver, Device* device, Pool* pool) {
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (!known(driver, pool) || driver.device(pool->device) != device) return CUDA_ERROR_INVALID_VALUE;
  device->current_pool = pool;
  return CUDA_SUCCESS;
}

CUresult get_pool(Device* device, bool current, CUmemoryPool* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *out = as_handle(current ? device->current_pool : device->default_pool);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace fake

using namespace fake;

CUresult cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream stream) {
  return enter("cuMemAllocAsync", Need::kContext,
               [&](Driver& d) { return allocate(d, dptr, bytesize, nullptr, stream, false); });
}
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* dptr, size_t bytesize, CUstream stream) {
  return enter("cuMemAllocAsync_ptsz", Need::kContext,
               [&](Driver& d) { return allocate(d, dptr, bytesize, nullptr, stream, true); });
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool, CUstream stream) {
  return enter("cuMemAllocFromPoolAsync", Need::kInitialised, [&](Driver& d) {
    return pool == nullptr ? CUDA_ERROR_INVALID_VALUE : allocate(d, dptr, bytesize, as_pool(pool), stream, false);
  });
}
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool, CUstream stream) {
  return enter("cuMemAllocFromPoolAsync_ptsz", Need::kInitialised, [&](Driver& d) {
    return pool == nullptr ? CUDA_ERROR_INVALID_VALUE : allocate(d, dptr, bytesize, as_pool(pool), stream, true);
  });
}
CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream stream) {
  return enter("cuMemFreeAsync", Need::kInitialised, [&](Driver& d) { return release(d, dptr, stream, false); });
}
CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream stream) {
  return enter("cuMemFreeAsync_ptsz", Need::kInitialised, [&](Driver& d) { return release(d, dptr, stream, true); });
}
CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* props) {
  return enter("cuMemPoolCreate", Need::kInitialised, [&](Driver& d) { return create(d, pool, props); });
}
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return enter("cuMemPoolDestroy", Need::kInitialised, [&](Driver& d) { return destroy(d, as_pool(pool)); });
}
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  return enter("cuMemPoolTrimTo", Need::kInitialised, [&](Driver& d) {
    if (spoils_captures(d)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (!known(d, as_pool(pool))) return CUDA_ERROR_INVALID_VALUE;
    if (keep < kAbsurdBytes) trim_pool(d, as_pool(pool), keep);
    return CUDA_SUCCESS;
  });
}
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice dev) {
  return enter("cuDeviceGetDefaultMemPool", Need::kInitialised,
               [&](Driver& d) { return get_pool(d.device(dev), false, pool); });
}
CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) {
  return enter("cuDeviceGetMemPool", Need::kInitialised,
               [&](Driver& d) { return get_pool(d.device(dev), true, pool); });
}
CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  return enter("cuDeviceSetMemPool", Need::kInitialised,
               [&](Driver& d) { return set_current_pool(d, d.device(dev), as_pool(pool)); });
}
CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return enter("cuMemGetDefaultMemPool", Need::kInitialised,
               [&](Driver& d) { return get_pool(device_at(d, location, type), false, pool); });
}
CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return enter("cuMemGetMemPool", Need::kInitialised,
               [&](Driver& d) { return get_pool(device_at(d, location, type), true, pool); });
}
CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  return enter("cuMemSetMemPool", Need::kInitialised,
               [&](Driver& d) { return set_current_pool(d, device_at(d, location, type), as_pool(pool)); });
}
