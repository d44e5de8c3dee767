// Which limits hold at this moment: the process's own, which `gpucap set` may change while it runs, and its group's.
// Called wherever a limit is about to matter; the common case is two loads and a compare.
#pragma once

#include <cstdint>

#include "shim/process/process.h"

namespace gpucap {

// The limit of the device's group as it stands, bounded by the policy file; kNoLimit outside of any group.
inline uint64_t standing_group_limit(const Device& device) {
  if (device.group == nullptr) return core::kNoLimit;
  const uint64_t limit = device.group->limit(device.group_number);
  return limit < device.group_policy_limit ? limit : device.group_policy_limit;
}

// What a program is to be told about its memory: the narrower of its own limit and its group's.
struct Shown {
  bool bounded = false;  // false: what the driver says stands
  uint64_t total_bytes = 0;
  uint64_t used_bytes = 0;
  uint64_t free_bytes = 0;
};
// Looks at NVML first if that is due. On a device that was not used yet, nothing is set up.
Shown shown_memory(Process& process, Device& device);
uint64_t shown_total(Process& process, Device& device);  // core::kNoLimit: not bounded

}  // namespace gpucap
