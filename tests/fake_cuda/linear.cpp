// cuMemAlloc, cuMemAllocPitch, cuMemAllocManaged and cuMemFree in all their spellings. See linear.h.
#include "tests/fake_cuda/linear.h"

#include <sys/mman.h>

#include <cstdlib>

#include "tests/fake_cuda/graph.h"
#include "tests/fake_cuda/host.h"
#include "tests/fake_cuda/ipc.h"
#include "tests/fake_cuda/pool.h"

namespace fake {
namespace {

void give_linear_back(Driver& driver, uint64_t address, const Range& range) {
  if (range.mapped == 0) {
    remove_small(driver, range.context, range.low ? range.context->small_low : range.context->small_linear, address,
                 range.bytes);
    return;
  }
  Backing::discard(address, range.mapped);
  Backing::release(address, range.mapped);
  if (range.kind == RangeKind::kManaged) {
    driver.truth.give_managed(driver.device(range.device)->physical, range.charged);
  } else {
    driver.give(range.device, range.charged);
  }
}

CUresult allocate_managed(Driver& driver, uint64_t bytes, uint64_t* address) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes >= kAbsurdBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  Context* const context = current_context();
  Range range;
  range.kind = RangeKind::kManaged;
  range.bytes = bytes;
  range.charged = range.mapped = whole_blocks(bytes);
  range.device = context->device;
  range.context = context;
  range.extent = driver.backing.create(range.mapped);
  const uint64_t base = range.extent.fd < 0 ? 0 : Backing::map(range.extent, false);
  if (base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  driver.truth.take_managed(driver.device(range.device)->physical, range.charged);
  driver.ranges[base] = range;
  *address = base;
  return CUDA_SUCCESS;
}

CUresult allocate_pitch(Driver& driver, uint64_t width, uint64_t height, unsigned element, bool low, uint64_t* address,
                        uint64_t* pitch) {
  if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
  if (width >= kAbsurdBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t rounded = round_up(width, kGranuleBytes);
  const CUresult result = allocate_linear(driver, saturating_product(rounded, height), low, address);
  if (result == CUDA_SUCCESS) *pitch = rounded;
  return result;
}

}  // namespace

uint64_t place_small(Driver& driver, Context* context, SmallBlocks& blocks, uint64_t bytes, bool low) {
  if (const uint64_t place = blocks.place(bytes)) return place;
  if (!driver.take(context->device, kBlockBytes)) return 0;
  const Extent extent = driver.backing.create(kBlockBytes);
  const uint64_t block = extent.fd < 0 ? 0 : Backing::map(extent, low);
  if (block == 0) {
    driver.give(context->device, kBlockBytes);
    return 0;
  }
  blocks.add_block(block);
  context->blocks[block] = extent;
  return blocks.place(bytes);
}

void remove_small(Driver& driver, Context* context, SmallBlocks& blocks, uint64_t address, uint64_t bytes) {
  uint64_t block = 0;
  if (!blocks.remove(address, bytes, &block)) return;
  context->blocks.erase(block);
  Backing::discard(block, kBlockBytes);
  Backing::release(block, kBlockBytes);
  driver.give(context->device, kBlockBytes);
}

CUresult allocate_linear(Driver& driver, uint64_t bytes, bool low, uint64_t* address) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes >= kAbsurdBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  Context* const context = current_context();
  Range range;
  range.bytes = bytes;
  range.device = context->device;
  range.context = context;
  range.low = low;
  uint64_t base = 0;
  if (bytes <= kSmallBytes) {
    base = place_small(driver, context, low ? context->small_low : context->small_linear, bytes, low);
    if (base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    const uint64_t block = base / kBlockBytes * kBlockBytes;
    range.extent = context->blocks[block];
    range.extent.offset += base - block;
    range.extent.bytes -= base - block;
  } else {
    range.charged = range.mapped = whole_blocks(bytes);
    if (!driver.take(range.device, range.charged)) return CUDA_ERROR_OUT_OF_MEMORY;
    range.extent = driver.backing.create(range.mapped);
    base = range.extent.fd < 0 ? 0 : Backing::map(range.extent, low);
    if (base == 0) {
      driver.give(range.device, range.charged);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  driver.ranges[base] = range;
  *address = base;
  return CUDA_SUCCESS;
}

CUresult free_any(Driver& driver, uint64_t address) {
  if (address == 0) return CUDA_SUCCESS;
  const auto found = driver.ranges.find(address);
  if (found == driver.ranges.end()) return CUDA_ERROR_INVALID_VALUE;
  const Range range = found->second;
  switch (range.kind) {
    case RangeKind::kLinear:
    case RangeKind::kManaged:
      driver.ranges.erase(found);
      give_linear_back(driver, address, range);
      return CUDA_SUCCESS;
    case RangeKind::kPool:
      return free_to_pool(driver, address);
    case RangeKind::kGraph:
      return free_graph_memory(driver, address);
    case RangeKind::kImported:
    case RangeKind::kMapping:
    case RangeKind::kHost:
      break;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

void free_all_linear(Driver& driver, Context* context) {
  for (auto next = driver.ranges.begin(); next != driver.ranges.end();) {
    const auto [address, range] = *next;
    const bool ours = range.context == context;
    if (ours && (range.kind == RangeKind::kLinear || range.kind == RangeKind::kManaged)) {
      next = driver.ranges.erase(next);
      give_linear_back(driver, address, range);
    } else if (ours && range.kind == RangeKind::kHost) {
      next = driver.ranges.erase(next);
      release_host(address, range);
    } else if (ours && range.kind == RangeKind::kImported) {
      next = driver.ranges.erase(next);
      release_import(address, range);
    } else {
      ++next;
    }
  }
}

}  // namespace fake

using namespace fake;

CUresult cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize) {
  return enter("cuMemAlloc_v2", Need::kContext, [&](Driver& d) {
    if (spoils_captures(d)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (dptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
    uint64_t address = 0;
    const CUresult result = allocate_linear(d, bytesize, false, &address);
    if (result == CUDA_SUCCESS) *dptr = address;
    return result;
  });
}
CUresult cuMemAlloc(CUdeviceptr_v1* dptr, unsigned int bytesize) {
  return enter("cuMemAlloc", Need::kContext, [&](Driver& d) {
    if (dptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
    uint64_t address = 0;
    const CUresult result = allocate_linear(d, bytesize, true, &address);
    if (result == CUDA_SUCCESS) *dptr = static_cast<CUdeviceptr_v1>(address);
    return result;
  });
}
CUresult cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pPitch, size_t width, size_t height, unsigned int element) {
  return enter("cuMemAllocPitch_v2", Need::kContext, [&](Driver& d) {
    if (dptr == nullptr || pPitch == nullptr) return CUDA_ERROR_INVALID_VALUE;
    uint64_t address = 0, pitch = 0;
    const CUresult result = allocate_pitch(d, width, height, element, false, &address, &pitch);
    if (result == CUDA_SUCCESS) *dptr = address, *pPitch = pitch;
    return result;
  });
}
CUresult cuMemAllocPitch(CUdeviceptr_v1* dptr, unsigned int* pPitch, unsigned int width, unsigned int height,
                         unsigned int element) {
  return enter("cuMemAllocPitch", Need::kContext, [&](Driver& d) {
    if (dptr == nullptr || pPitch == nullptr) return CUDA_ERROR_INVALID_VALUE;
    uint64_t address = 0, pitch = 0;
    const CUresult result = allocate_pitch(d, width, height, element, true, &address, &pitch);
    if (result == CUDA_SUCCESS) {
      *dptr = static_cast<CUdeviceptr_v1>(address);
      *pPitch = static_cast<unsigned>(pitch);
    }
    return result;
  });
}
CUresult cuMemAllocManaged(CUdeviceptr* dptr, size_t bytesize, unsigned int flags) {
  return enter("cuMemAllocManaged", Need::kContext, [&](Driver& d) {
    if (dptr == nullptr || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    uint64_t address = 0;
    const CUresult result = allocate_managed(d, bytesize, &address);
    if (result == CUDA_SUCCESS) *dptr = address;
    return result;
  });
}
CUresult cuMemFree_v2(CUdeviceptr dptr) {
  return enter("cuMemFree_v2", Need::kContext, [&](Driver& d) { return free_any(d, dptr); });
}
CUresult cuMemFree(CUdeviceptr_v1 dptr) {
  return enter("cuMemFree", Need::kContext, [&](Driver& d) { return free_any(d, dptr); });
}
