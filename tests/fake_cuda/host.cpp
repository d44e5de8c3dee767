// Pinned and registered host memory. See host.h.
#include "tests/fake_cuda/host.h"

#include <sys/mman.h>

#include "tests/fake_cuda/context.h"

namespace fake {
namespace {

CUresult allocate_host(Driver& driver, void** out, uint64_t bytes) {
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes >= kAbsurdBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t mapped = round_up(bytes, 4096);
  void* const base =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  Range range;
  range.kind = RangeKind::kHost;
  range.bytes = bytes;
  range.mapped = mapped;
  range.context = current_context();
  range.device = range.context->device;
  driver.ranges[reinterpret_cast<uint64_t>(base)] = range;
  *out = base;
  return CUDA_SUCCESS;
}

CUresult free_host(Driver& driver, void* p, bool registered) {
  const auto found = driver.ranges.find(reinterpret_cast<uint64_t>(p));
  if (found == driver.ranges.end() || found->second.kind != RangeKind::kHost ||
      found->second.registered != registered) {
    return registered ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : CUDA_ERROR_INVALID_VALUE;
  }
  release_host(found->first, found->second);
  driver.ranges.erase(found);
  return CUDA_SUCCESS;
}

CUresult register_host(Driver& driver, void* p, uint64_t bytes) {
  if (p == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  uint64_t base = 0;
  const auto address = reinterpret_cast<uint64_t>(p);
  if (driver.find_range(address, &base) != nullptr) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  Range range;
  range.kind = RangeKind::kHost;
  range.bytes = bytes;
  range.registered = true;
  range.context = current_context();
  range.device = range.context->device;
  driver.ranges[address] = range;
  return CUDA_SUCCESS;
}

bool is_pinned(Driver& driver, void* p) {
  uint64_t base = 0;
  const Range* const range = driver.find_range(reinterpret_cast<uint64_t>(p), &base);
  return range != nullptr && range->kind == RangeKind::kHost;
}

}  // namespace

void release_host(uint64_t address, const Range& range) {
  if (!range.registered) Backing::release(address, range.mapped);
}

}  // namespace fake

using namespace fake;

CUresult cuMemAllocHost_v2(void** pp, size_t bytesize) {
  return enter("cuMemAllocHost_v2", Need::kContext, [&](Driver& d) { return allocate_host(d, pp, bytesize); });
}
CUresult cuMemAllocHost(void** pp, unsigned int bytesize) {
  return enter("cuMemAllocHost", Need::kContext, [&](Driver& d) { return allocate_host(d, pp, bytesize); });
}
CUresult cuMemHostAlloc(void** pp, size_t bytesize, unsigned int) {
  return enter("cuMemHostAlloc", Need::kContext, [&](Driver& d) { return allocate_host(d, pp, bytesize); });
}
CUresult cuMemFreeHost(void* p) {
  return enter("cuMemFreeHost", Need::kContext, [&](Driver& d) { return free_host(d, p, false); });
}
CUresult cuMemHostRegister_v2(void* p, size_t bytesize, unsigned int) {
  return enter("cuMemHostRegister_v2", Need::kContext, [&](Driver& d) { return register_host(d, p, bytesize); });
}
CUresult cuMemHostRegister(void* p, size_t bytesize, unsigned int) {
  return enter("cuMemHostRegister", Need::kContext, [&](Driver& d) { return register_host(d, p, bytesize); });
}
CUresult cuMemHostUnregister(void* p) {
  return enter("cuMemHostUnregister", Need::kContext, [&](Driver& d) { return free_host(d, p, true); });
}
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p, unsigned int) {
  return enter("cuMemHostGetDevicePointer_v2", Need::kContext, [&](Driver& d) {
    if (pdptr == nullptr || !is_pinned(d, p)) return CUDA_ERROR_INVALID_VALUE;
    *pdptr = reinterpret_cast<CUdeviceptr>(p);
    return CUDA_SUCCESS;
  });
}
CUresult cuMemHostGetFlags(unsigned int* pFlags, void* p) {
  return enter("cuMemHostGetFlags", Need::kContext, [&](Driver& d) {
    if (pFlags == nullptr || !is_pinned(d, p)) return CUDA_ERROR_INVALID_VALUE;
    *pFlags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
  });
}
