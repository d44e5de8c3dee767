// One GPU as this process sees it: its quota, the mirror of how the driver packs small blocks, and the gauges that
// others read. Lives in the process object as zeroed static memory; never destroyed. Fields without a comment on
// threads are set once, before `active` is stored.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "shim/core/block_map.h"
#include "shim/core/ledger.h"
#include "wire/group_member.h"
#include "wire/layout.h"

namespace gpucap {

struct Device {
  uint32_t ordinal = 0;
  uint8_t uuid[16] = {};
  char uuid_text[48] = {};  // "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
  char name[64] = {};
  uint64_t physical_bytes = 0;

  core::Ledger ledger;
  core::BlockMap blocks;
  std::atomic<int64_t> managed_bytes{0};  // within the ledger's committed bytes, but not within NVML's figure

  // Driver calls that take or give back memory: started in the high half, under way in the low half. A look at NVML is
  // exact when none was under way and none has started meanwhile.
  std::atomic<uint64_t> flights{0};

  // When the figures must be looked at again; see quota.h.
  std::atomic<bool> stale{false};
  std::atomic<uint64_t> looked_at_ns{0};
  std::atomic<uint64_t> driver_changed_at_ns{0};  // when a look last found another share of the driver's
  std::atomic<int64_t> committed_at_look{0};
  std::atomic<uint64_t> headroom_at_look{0};
  std::atomic<bool> inexact{false};  // the last look fell between calls under way
  std::atomic<int64_t> driver_exact{0};
  std::atomic<uint64_t> peak_bytes{0};
  std::mutex look_lock;  // one reading of NVML at a time, so that an older one never overwrites a newer

  // Held while one thread looks, reclaims and refuses; the others wait here rather than refuse on half a figure.
  std::mutex slow;

  // What `gpucap set` asked for, as far as it was taken over; see limits.h.
  const gpucap_control* control = nullptr;
  std::atomic<uint64_t> control_seen{0};

  // What the policy file allows at most, to this process and to its group.
  uint32_t limit_source = GPUCAP_LIMIT_FROM_NOWHERE;
  uint64_t policy_limit = core::kNoLimit;
  uint64_t group_policy_limit = core::kNoLimit;
  // The budget that it shares with other processes, and the number of this device there; null: none.
  wire::GroupMember* group = nullptr;
  int group_number = 0;
  std::atomic<bool> in_line{false};  // one thread stands in the group's line; others of the process stand behind it

  std::atomic<bool> active{false};  // gauges and truth are set up
  gpucap_device* gauge = nullptr;   // in the segment, or in memory of our own where there is none
  gpucap_api_counter* counters = nullptr;
  void* truth_handle = nullptr;            // the truth reader's own name of the device
  std::atomic<bool> truth_missing{false};  // NVML turned out to have no figure for this process: not asked again
};

inline void begin_flight(Device& device) { device.flights.fetch_add((uint64_t{1} << 32) | 1); }
inline void end_flight(Device& device) { device.flights.fetch_sub(1); }

}  // namespace gpucap
