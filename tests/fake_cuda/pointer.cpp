// What the driver knows about an address.
#include "tests/fake_cuda/context.h"
#include "tests/fake_cuda/pool.h"

namespace fake {
namespace {

template <class T>
CUresult store(void* out, T value) {
  *static_cast<T*>(out) = value;
  return CUDA_SUCCESS;
}

// With `range` nullptr (not one of ours) only what is harmless is answered, all zeros.
CUresult get(const Range* range, uint64_t base, uint64_t address, CUpointer_attribute attribute, void* out) {
  const bool host = range != nullptr && range->kind == RangeKind::kHost;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return store(out, as_handle(range == nullptr ? nullptr : range->context));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return store<unsigned>(out, range == nullptr ? 0 : host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return store<CUdeviceptr>(out, range == nullptr ? 0 : address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return store<void*>(out, host || (range != nullptr && range->kind == RangeKind::kManaged)
                                   ? reinterpret_cast<void*>(address)
                                   : nullptr);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return store<unsigned>(out, range != nullptr && range->kind == RangeKind::kManaged ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return store<int>(out, range == nullptr ? -2 : range->device);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return store<CUdeviceptr>(out, range == nullptr ? 0 : base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return store<size_t>(out, range == nullptr ? 0 : range->bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return store<unsigned>(out, range == nullptr ? 0 : 1);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return store<unsigned>(out, range != nullptr && range->kind == RangeKind::kLinear ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return store(out, as_handle(range == nullptr ? nullptr : range->pool));
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult get_range(Driver& driver, uint64_t* base, uint64_t* bytes, uint64_t address) {
  const Range* const range = driver.find_range(address, base);
  if (range == nullptr) return CUDA_ERROR_NOT_FOUND;
  *bytes = range->bytes;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace fake

using namespace fake;

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return enter("cuPointerGetAttribute", Need::kInitialised, [&](Driver& d) {
    uint64_t base = 0;
    const Range* const range = d.find_range(ptr, &base);
    if (data == nullptr || range == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return get(range, base, ptr, attribute, data);
  });
}
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data, CUdeviceptr ptr) {
  return enter("cuPointerGetAttributes", Need::kInitialised, [&](Driver& d) {
    if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    uint64_t base = 0;
    const Range* const range = d.find_range(ptr, &base);
    for (unsigned i = 0; i < count; ++i) {
      const CUresult result = get(range, base, ptr, attributes[i], data[i]);
      if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
  });
}
CUresult cuPointerSetAttribute(const void*, CUpointer_attribute, CUdeviceptr ptr) {
  return enter("cuPointerSetAttribute", Need::kInitialised, [&](Driver& d) {
    uint64_t base = 0;
    return d.find_range(ptr, &base) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}
CUresult cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
  return enter("cuMemGetAddressRange_v2", Need::kContext, [&](Driver& d) {
    uint64_t base = 0, bytes = 0;
    const CUresult result = get_range(d, &base, &bytes, dptr);
    if (result == CUDA_SUCCESS && pbase != nullptr) *pbase = base;
    if (result == CUDA_SUCCESS && psize != nullptr) *psize = bytes;
    return result;
  });
}
CUresult cuMemGetAddressRange(CUdeviceptr_v1* pbase, unsigned int* psize, CUdeviceptr_v1 dptr) {
  return enter("cuMemGetAddressRange", Need::kContext, [&](Driver& d) {
    uint64_t base = 0, bytes = 0;
    const CUresult result = get_range(d, &base, &bytes, dptr);
    if (result == CUDA_SUCCESS && pbase != nullptr) *pbase = static_cast<CUdeviceptr_v1>(base);
    if (result == CUDA_SUCCESS && psize != nullptr) *psize = static_cast<unsigned>(bytes);
    return result;
  });
}
