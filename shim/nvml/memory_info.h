// What the program is told by NVML about memory: total = the smaller of cap and card, used = what this process holds,
// free = the smaller of what the cap leaves and what the card has free. The same as cuMemGetInfo says. NVML answers
// first, so its errors, its view of NULL pointers and of versions stay; on a device without a cap nothing is changed.
// Any thread, with or without CUDA; starts neither CUDA nor the process object.
#pragma once

#include <cstdint>

#include "shim/nvml/nvml_api.h"

namespace gpucap::nvml {

struct Figures {
  bool capped = false;
  uint64_t total_bytes = 0;  // the cap, which may be more than the card has
  uint64_t used_bytes = 0;
  uint64_t free_bytes = 0;  // what the cap leaves
};

// For the device of this handle, which NVML has just accepted and says to have so many bytes.
Figures figures_of(DeviceHandle device, uint64_t physical_bytes);

// Only the second version has it. Where the card seems smaller than it is, nothing of it is the system's.
inline void clear_reserved(Memory&) {}
inline void clear_reserved(MemoryV2& memory) { memory.reserved = 0; }

template <typename Call, typename Record>
Return memory_info(const Call& call, DeviceHandle device, Record* memory) {
  const Return result = call();
  if (result != kSuccess || memory == nullptr) return result;
  const Figures figures = figures_of(device, memory->total);
  if (!figures.capped) return result;
  if (figures.total_bytes < memory->total) {
    memory->total = figures.total_bytes;
    clear_reserved(*memory);
  }
  if (figures.free_bytes < memory->free) memory->free = figures.free_bytes;
  memory->used = figures.used_bytes;
  return result;
}

}  // namespace gpucap::nvml
