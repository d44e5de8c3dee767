// Allocation, free and copies of the fake CUDA runtime: each call goes to one driver function, and a failure is
// remembered for cudaGetLastError. See runtime_driver.h.
#include "tests/fake_cuda/runtime.h"
#include "tests/fake_cuda/runtime_driver.h"

using namespace fake_runtime;

namespace {

CUdeviceptr number(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// Runs allocate(&address), and stores the address where the caller wants it only if that worked.
template <class Allocate>
CUresult store(void** out, Allocate allocate) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr address = 0;
  const CUresult result = allocate(&address);
  if (result == CUDA_SUCCESS) *out = reinterpret_cast<void*>(address);
  return result;
}

bool describe(const ChannelFormat* format, const Extent& extent, unsigned flags, CUDA_ARRAY3D_DESCRIPTOR* out) {
  if (format == nullptr) return false;
  const bool is_float = format->kind == 2;
  const bool is_signed = format->kind == 0;
  *out = {extent.width, extent.height, extent.depth, CU_AD_FORMAT_FLOAT, 1, flags};
  switch (format->x) {
    case 8:
      out->Format = is_signed ? CU_AD_FORMAT_SIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT8;
      break;
    case 16:
      out->Format = is_float ? CU_AD_FORMAT_HALF : is_signed ? CU_AD_FORMAT_SIGNED_INT16 : CU_AD_FORMAT_UNSIGNED_INT16;
      break;
    case 32:
      out->Format = is_float ? CU_AD_FORMAT_FLOAT : is_signed ? CU_AD_FORMAT_SIGNED_INT32 : CU_AD_FORMAT_UNSIGNED_INT32;
      break;
    default:
      return false;
  }
  out->NumChannels = format->y == 0 ? 1u : format->z == 0 ? 2u : 4u;
  return true;
}

int make_array(CUarray* out, const ChannelFormat* format, const Extent& extent, unsigned flags) {
  return in_context([&](const Imports& driver) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor{};
    return describe(format, extent, flags, &descriptor) ? driver.array_create(out, &descriptor)
                                                        : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace

FAKE_CUDART int cudaMalloc(void** out, size_t bytes) {
  return in_context([&](const Imports& driver) {
    if (out != nullptr && bytes == 0) return *out = nullptr, CUDA_SUCCESS;
    return store(out, [&](CUdeviceptr* address) { return driver.allocate(address, bytes); });
  });
}
FAKE_CUDART int cudaMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
  return in_context([&](const Imports& driver) {
    return store(out, [&](CUdeviceptr* address) { return driver.allocate_pitch(address, pitch, width, height, 4); });
  });
}
FAKE_CUDART int cudaMalloc3D(PitchedPtr* out, Extent extent) {
  return in_context([&](const Imports& driver) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    size_t pitch = 0;
    const CUresult result = store(&out->ptr, [&](CUdeviceptr* address) {
      return driver.allocate_pitch(address, &pitch, extent.width, extent.height * extent.depth, 4);
    });
    if (result == CUDA_SUCCESS) *out = {out->ptr, pitch, extent.width, extent.height};
    return result;
  });
}
FAKE_CUDART int cudaMallocManaged(void** out, size_t bytes, unsigned flags) {
  return in_context([&](const Imports& driver) {
    return store(out, [&](CUdeviceptr* address) { return driver.allocate_managed(address, bytes, flags); });
  });
}
FAKE_CUDART int cudaFree(void* pointer) {
  return in_context([&](const Imports& driver) { return driver.release(number(pointer)); });
}
FAKE_CUDART int cudaMallocHost(void** out, size_t bytes) {
  return in_context([&](const Imports& driver) { return driver.host_allocate(out, bytes, 0); });
}
FAKE_CUDART int cudaHostAlloc(void** out, size_t bytes, unsigned flags) {
  return in_context([&](const Imports& driver) { return driver.host_allocate(out, bytes, flags); });
}
FAKE_CUDART int cudaFreeHost(void* pointer) {
  return in_context(
      [&](const Imports& driver) { return pointer == nullptr ? CUDA_SUCCESS : driver.host_release(pointer); });
}

// With the suffix: of programs that are built for per-thread default streams.
#define FAKE_STREAM_ORDERED(suffix)                                                                                    \
  FAKE_CUDART int cudaMallocAsync##suffix(void** out, size_t bytes, CUstream stream) {                                 \
    return in_context([&](const Imports& driver) {                                                                     \
      return store(out, [&](CUdeviceptr* address) { return driver.allocate_async##suffix(address, bytes, stream); });  \
    });                                                                                                                \
  }                                                                                                                    \
  FAKE_CUDART int cudaMallocFromPoolAsync##suffix(void** out, size_t bytes, CUmemoryPool pool, CUstream stream) {      \
    return in_context([&](const Imports& driver) {                                                                     \
      return store(out, [&](CUdeviceptr* address) { return driver.from_pool##suffix(address, bytes, pool, stream); }); \
    });                                                                                                                \
  }                                                                                                                    \
  FAKE_CUDART int cudaFreeAsync##suffix(void* pointer, CUstream stream) {                                              \
    return in_context([&](const Imports& driver) { return driver.release_async##suffix(number(pointer), stream); });   \
  }
FAKE_STREAM_ORDERED()
FAKE_STREAM_ORDERED(_ptsz)

FAKE_CUDART int cudaDeviceGetDefaultMemPool(CUmemoryPool* pool, int device) {
  return with_driver([&](const Imports& driver) { return driver.default_pool(pool, device); });
}
FAKE_CUDART int cudaMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  return with_driver([&](const Imports& driver) { return driver.pool_trim(pool, keep); });
}
FAKE_CUDART int cudaMemPoolSetAttribute(CUmemoryPool pool, int attribute, void* value) {
  return with_driver(
      [&](const Imports& driver) { return driver.pool_set(pool, static_cast<CUmemPool_attribute>(attribute), value); });
}
FAKE_CUDART int cudaMallocArray(CUarray* out, const ChannelFormat* format, size_t width, size_t height,
                                unsigned flags) {
  return make_array(out, format, {width, height, 0}, flags);
}
FAKE_CUDART int cudaMalloc3DArray(CUarray* out, const ChannelFormat* format, Extent extent, unsigned flags) {
  return make_array(out, format, extent, flags);
}
FAKE_CUDART int cudaFreeArray(CUarray array) {
  return in_context(
      [&](const Imports& driver) { return array == nullptr ? CUDA_SUCCESS : driver.array_destroy(array); });
}
FAKE_CUDART int cudaMallocMipmappedArray(CUmipmappedArray* out, const ChannelFormat* format, Extent extent,
                                         unsigned levels, unsigned flags) {
  return in_context([&](const Imports& driver) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor{};
    return describe(format, extent, flags, &descriptor) ? driver.mipmap_create(out, &descriptor, levels)
                                                        : CUDA_ERROR_INVALID_VALUE;
  });
}
FAKE_CUDART int cudaFreeMipmappedArray(CUmipmappedArray array) {
  return in_context(
      [&](const Imports& driver) { return array == nullptr ? CUDA_SUCCESS : driver.mipmap_destroy(array); });
}
FAKE_CUDART int cudaMemcpy(void* to, const void* from, size_t bytes, int kind) {
  return in_context([&](const Imports& driver) {
    switch (kind) {
      case 0:
      case 4:
        return driver.copy(number(to), number(from), bytes);
      case 1:
        return driver.copy_to_device(number(to), from, bytes);
      case 2:
        return driver.copy_to_host(to, number(from), bytes);
      case 3:
        return driver.copy_on_device(number(to), number(from), bytes);
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  });
}
FAKE_CUDART int cudaMemset(void* to, int value, size_t bytes) {
  return in_context(
      [&](const Imports& driver) { return driver.fill(number(to), static_cast<unsigned char>(value), bytes); });
}
