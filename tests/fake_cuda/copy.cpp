// Copies and fills of linear memory, which really move bytes. Copies of arrays and of 2D and 3D shapes are not
// imitated.
#include <cstring>

#include "tests/fake_cuda/graph.h"
#include "tests/fake_cuda/stream.h"

namespace fake {
namespace {

void* at(uint64_t address) { return reinterpret_cast<void*>(address); }
uint64_t at(const void* address) { return reinterpret_cast<uint64_t>(address); }

// All of [address, address + bytes) is ours; it may run over neighbouring mappings.
bool is_ours(Driver& driver, uint64_t address, uint64_t bytes) {
  const uint64_t end = address + bytes;
  uint64_t base = 0;
  while (address < end) {
    const Range* const range = driver.find_range(address, &base);
    if (range == nullptr) return false;
    address = base + range->bytes;
  }
  return true;
}

enum class Side { kHost, kDevice, kEither };

CUresult copy(Driver& driver, uint64_t to, Side to_side, uint64_t from, Side from_side, uint64_t bytes) {
  if (bytes == 0) return CUDA_SUCCESS;
  if (to == 0 || from == 0) return CUDA_ERROR_INVALID_VALUE;
  if (to_side == Side::kDevice && !is_ours(driver, to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (from_side == Side::kDevice && !is_ours(driver, from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  std::memmove(at(to), at(from), bytes);
  return CUDA_SUCCESS;
}

template <class T>
CUresult fill(Driver& driver, uint64_t to, T value, uint64_t count) {
  if (!is_ours(driver, to, count * sizeof(T))) return CUDA_ERROR_INVALID_VALUE;
  for (uint64_t i = 0; i < count; ++i) static_cast<T*>(at(to))[i] = value;
  return CUDA_SUCCESS;
}

// In a stream that captures, the work becomes a node instead.
template <class Work>
CUresult in_stream(Driver& driver, CUstream handle, bool per_thread, CUgraphNodeType type, Work work) {
  Stream* const stream = find_stream(driver, handle, per_thread);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture == nullptr) return work();
  capture_other(*stream->capture, type, nullptr);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace fake

using namespace fake;

#define FAKE_NOW(name, parameters, work)                                  \
  CUresult name parameters {                                              \
    return enter(#name, Need::kContext, [&](Driver& d) { return work; }); \
  }
#define FAKE_LATER(name, per_thread, type, parameters, work)                                    \
  CUresult name parameters {                                                                    \
    return enter(#name, Need::kContext, [&](Driver& d) {                                        \
      return in_stream(d, stream, per_thread, CU_GRAPH_NODE_TYPE_##type, [&] { return work; }); \
    });                                                                                         \
  }

#define FAKE_COPY(name, sized, to_type, to, to_side, from_type, from, from_side)                              \
  FAKE_NOW(name##_v2, (to_type dst, from_type src, size_t n),                                                 \
           copy(d, to(dst), Side::to_side, from(src), Side::from_side, n))                                    \
  FAKE_NOW(name##_v2_ptds, (to_type dst, from_type src, size_t n),                                            \
           copy(d, to(dst), Side::to_side, from(src), Side::from_side, n))                                    \
  FAKE_LATER(name##Async_v2, false, MEMCPY, (to_type dst, from_type src, size_t n, CUstream stream),          \
             copy(d, to(dst), Side::to_side, from(src), Side::from_side, n))                                  \
  FAKE_LATER(name##Async_v2_ptsz, true, MEMCPY, (to_type dst, from_type src, size_t n, CUstream stream),      \
             copy(d, to(dst), Side::to_side, from(src), Side::from_side, n))                                  \
  FAKE_NOW(name, (sized##_to dst, sized##_from src, unsigned int n),                                          \
           copy(d, to(dst), Side::to_side, from(src), Side::from_side, n))                                    \
  FAKE_LATER(name##Async, false, MEMCPY, (sized##_to dst, sized##_from src, unsigned int n, CUstream stream), \
             copy(d, to(dst), Side::to_side, from(src), Side::from_side, n))

using HtoD_to = CUdeviceptr_v1;
using HtoD_from = const void*;
using DtoH_to = void*;
using DtoH_from = CUdeviceptr_v1;
using DtoD_to = CUdeviceptr_v1;
using DtoD_from = CUdeviceptr_v1;

FAKE_COPY(cuMemcpyHtoD, HtoD, CUdeviceptr, uint64_t, kDevice, const void*, at, kHost)
FAKE_COPY(cuMemcpyDtoH, DtoH, void*, at, kHost, CUdeviceptr, uint64_t, kDevice)
FAKE_COPY(cuMemcpyDtoD, DtoD, CUdeviceptr, uint64_t, kDevice, CUdeviceptr, uint64_t, kDevice)

// With unified addresses either side may be host memory.
FAKE_NOW(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t n), copy(d, dst, Side::kEither, src, Side::kEither, n))
FAKE_NOW(cuMemcpy_ptds, (CUdeviceptr dst, CUdeviceptr src, size_t n),
         copy(d, dst, Side::kEither, src, Side::kEither, n))
FAKE_LATER(cuMemcpyAsync, false, MEMCPY, (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream),
           copy(d, dst, Side::kEither, src, Side::kEither, n))
FAKE_LATER(cuMemcpyAsync_ptsz, true, MEMCPY, (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream),
           copy(d, dst, Side::kEither, src, Side::kEither, n))
FAKE_NOW(cuMemcpyPeer, (CUdeviceptr dst, CUcontext, CUdeviceptr src, CUcontext, size_t n),
         copy(d, dst, Side::kDevice, src, Side::kDevice, n))
FAKE_NOW(cuMemcpyPeer_ptds, (CUdeviceptr dst, CUcontext, CUdeviceptr src, CUcontext, size_t n),
         copy(d, dst, Side::kDevice, src, Side::kDevice, n))
FAKE_LATER(cuMemcpyPeerAsync, false, MEMCPY,
           (CUdeviceptr dst, CUcontext, CUdeviceptr src, CUcontext, size_t n, CUstream stream),
           copy(d, dst, Side::kDevice, src, Side::kDevice, n))
FAKE_LATER(cuMemcpyPeerAsync_ptsz, true, MEMCPY,
           (CUdeviceptr dst, CUcontext, CUdeviceptr src, CUcontext, size_t n, CUstream stream),
           copy(d, dst, Side::kDevice, src, Side::kDevice, n))

#define FAKE_FILL(name, type)                                                                          \
  FAKE_NOW(name, (CUdeviceptr_v1 dst, type value, unsigned int n), fill<type>(d, dst, value, n))       \
  FAKE_NOW(name##_v2, (CUdeviceptr dst, type value, size_t n), fill<type>(d, dst, value, n))           \
  FAKE_NOW(name##_v2_ptds, (CUdeviceptr dst, type value, size_t n), fill<type>(d, dst, value, n))      \
  FAKE_LATER(name##Async, false, MEMSET, (CUdeviceptr dst, type value, size_t n, CUstream stream),     \
             fill<type>(d, dst, value, n))                                                             \
  FAKE_LATER(name##Async_ptsz, true, MEMSET, (CUdeviceptr dst, type value, size_t n, CUstream stream), \
             fill<type>(d, dst, value, n))

FAKE_FILL(cuMemsetD8, unsigned char)
FAKE_FILL(cuMemsetD16, unsigned short)
FAKE_FILL(cuMemsetD32, unsigned int)
