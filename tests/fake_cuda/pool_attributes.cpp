// Attributes and access rights of stream-ordered pools.
#include "tests/fake_cuda/pool.h"

namespace fake {
namespace {

CUresult get_attribute(Driver& driver, Pool* pool, CUmemPool_attribute attribute, void* value) {
  if (driver.pools.count(pool) == 0 || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto& bytes = *static_cast<cuuint64_t*>(value);
  auto& flag = *static_cast<int*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      return flag = pool->reuse[0], CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      return flag = pool->reuse[1], CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      return flag = pool->reuse[2], CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return bytes = pool->release_threshold, CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return bytes = pool->reserved_bytes, CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return bytes = pool->reserved_high_bytes, CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return bytes = pool->used_bytes, CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return bytes = pool->used_high_bytes, CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult set_attribute(Driver& driver, Pool* pool, CUmemPool_attribute attribute, const void* value) {
  if (driver.pools.count(pool) == 0 || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      return pool->reuse[0] = *static_cast<const int*>(value), CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      return pool->reuse[1] = *static_cast<const int*>(value), CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      return pool->reuse[2] = *static_cast<const int*>(value), CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return pool->release_threshold = *static_cast<const cuuint64_t*>(value), CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (*static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;  // high marks can only be reset
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
    pool->used_high_bytes = pool->used_bytes;
  } else {
    pool->reserved_high_bytes = pool->reserved_bytes;
  }
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace fake

using namespace fake;

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return enter("cuMemPoolGetAttribute", Need::kInitialised, [&](Driver& d) {
    if (spoils_captures(d)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return get_attribute(d, as_pool(pool), attribute, value);
  });
}
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return enter("cuMemPoolSetAttribute", Need::kInitialised,
               [&](Driver& d) { return set_attribute(d, as_pool(pool), attribute, value); });
}
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  return enter("cuMemPoolSetAccess", Need::kInitialised, [&](Driver& d) {
    if (d.pools.count(as_pool(pool)) == 0 || (map == nullptr && count != 0)) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
  });
}
CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  return enter("cuMemPoolGetAccess", Need::kInitialised, [&](Driver& d) {
    if (d.pools.count(as_pool(pool)) == 0 || flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
  });
}
