// Address reservations and mappings of VMM memory. See vmm.h.
#include "tests/fake_cuda/vmm.h"

namespace fake {
namespace {

// The reservation that holds all of [address, address + bytes).
bool is_reserved(uint64_t address, uint64_t bytes) {
  auto next = vmm().reservations.upper_bound(address);
  if (next == vmm().reservations.begin()) return false;
  --next;
  return bytes <= next->second && address - next->first <= next->second - bytes;
}

bool overlaps_a_mapping(Driver& driver, uint64_t address, uint64_t bytes) {
  auto next = driver.ranges.lower_bound(address + bytes);
  if (next == driver.ranges.begin()) return false;
  --next;
  return next->first + next->second.bytes > address;
}

// The mappings that make up exactly [address, address + bytes), by base; empty if it is not whole mappings.
std::vector<uint64_t> mappings_in(Driver& driver, uint64_t address, uint64_t bytes, bool whole_only) {
  std::vector<uint64_t> bases;
  uint64_t base = 0;
  const uint64_t end = address + bytes;
  for (uint64_t at = address; at < end;) {
    const Range* const range = driver.find_range(at, &base);
    if (range == nullptr || range->kind != RangeKind::kMapping) return {};
    if (whole_only && (base != at || base + range->bytes > end)) return {};
    bases.push_back(base);
    at = base + range->bytes;
  }
  return bases;
}

CUresult reserve(CUdeviceptr* out, uint64_t bytes, uint64_t alignment, uint64_t wanted) {
  if (out == nullptr || bytes == 0 || bytes % kBlockBytes != 0) return CUDA_ERROR_INVALID_VALUE;
  if (alignment != 0 && (alignment & (alignment - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes >= kAbsurdBytes || alignment >= kAbsurdBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t base = Backing::reserve(bytes, alignment, wanted);
  if (base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  vmm().reservations[base] = bytes;
  *out = base;
  return CUDA_SUCCESS;
}

CUresult free_reservation(Driver& driver, uint64_t base, uint64_t bytes) {
  const auto found = vmm().reservations.find(base);
  if (found == vmm().reservations.end() || found->second != bytes) return CUDA_ERROR_INVALID_VALUE;
  if (overlaps_a_mapping(driver, base, bytes)) return CUDA_ERROR_INVALID_VALUE;
  Backing::release(base, bytes);
  vmm().reservations.erase(found);
  return CUDA_SUCCESS;
}

CUresult map(Driver& driver, uint64_t address, uint64_t bytes, uint64_t offset, Handle* handle) {
  if (vmm().handles.count(handle) == 0 || handle->references == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0 || (address | bytes | offset) % kBlockBytes != 0) return CUDA_ERROR_INVALID_VALUE;
  const Extent& extent = handle->physical->extent;
  if (offset > extent.bytes || bytes > extent.bytes - offset) return CUDA_ERROR_INVALID_VALUE;
  if (!is_reserved(address, bytes) || overlaps_a_mapping(driver, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (!Backing::map_at(address, {extent.fd, extent.offset + offset, bytes})) return CUDA_ERROR_OUT_OF_MEMORY;
  Range range;
  range.kind = RangeKind::kMapping;
  range.bytes = bytes;
  range.device = handle->physical->device < 0 ? 0 : handle->physical->device;
  range.extent = extent;
  range.owner = as_number(handle);
  driver.ranges[address] = range;
  ++handle->mappings;
  ++handle->physical->uses;
  return CUDA_SUCCESS;
}

CUresult unmap(Driver& driver, uint64_t address, uint64_t bytes) {
  const std::vector<uint64_t> bases = mappings_in(driver, address, bytes, true);
  if (bases.empty()) return CUDA_ERROR_INVALID_VALUE;
  for (const uint64_t base : bases) {
    const Range range = driver.ranges.at(base);
    Handle* const handle = as_memory(range.owner);
    // The last use: give the host's pages back. Shared files keep theirs for whoever else has them open.
    if (handle->physical->uses == 1 && !handle->physical->shareable) Backing::discard(base, range.bytes);
    Backing::unmap_to_reserved(base, range.bytes);
    driver.ranges.erase(base);
    drop_mapping(driver, handle);
  }
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace fake

using namespace fake;

CUresult cuMemAddressReserve(CUdeviceptr* ptr, size_t size, size_t alignment, CUdeviceptr addr,
                             unsigned long long flags) {
  return enter("cuMemAddressReserve", Need::kInitialised,
               [&](Driver&) { return flags != 0 ? CUDA_ERROR_INVALID_VALUE : reserve(ptr, size, alignment, addr); });
}
CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) {
  return enter("cuMemAddressFree", Need::kInitialised, [&](Driver& d) { return free_reservation(d, ptr, size); });
}
CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  return enter("cuMemMap", Need::kInitialised, [&](Driver& d) {
    return flags != 0 ? CUDA_ERROR_INVALID_VALUE : map(d, ptr, size, offset, as_memory(handle));
  });
}
CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
  return enter("cuMemUnmap", Need::kInitialised, [&](Driver& d) { return unmap(d, ptr, size); });
}
CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc* desc, size_t count) {
  return enter("cuMemSetAccess", Need::kInitialised, [&](Driver& d) {
    if (desc == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    return mappings_in(d, ptr, size, false).empty() ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}
CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr ptr) {
  return enter("cuMemGetAccess", Need::kInitialised, [&](Driver& d) {
    if (flags == nullptr || location == nullptr || mappings_in(d, ptr, 1, false).empty()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
  });
}
