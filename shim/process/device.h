// One GPU as this process sees it: its quota, the mirror of how the driver packs small blocks, and the gauges that
// others read. Lives in the process object as zeroed static memory; never destroyed. Fields without a comment on
// threads are set once, before `active` is stored.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "shim/core/block_map.h"
#include "shim/core/ledger.h"
#include "shim/process/thread_words.h"
#include "wire/group_member.h"
#include "wire/layout.h"

namespace gpucap {

// What one lane's calls leave for others to see; written by the lane's thread.
struct alignas(64) Flights {
  // Driver calls that take or give back memory.
  std::atomic<uint64_t> begun{0};
  std::atomic<uint64_t> ended{0};
  // Promises that were not needed, kept for requests to come; still within the ledger's reserved bytes. Whoever needs
  // the room takes them from here.
  std::atomic<int64_t> kept_promise{0};
  // The lane's own: requests whose need is not known, each of which stands for one of the kept promises; and how much
  // it may keep. See quota.h.
  std::atomic<int64_t> unasked{0};
  std::atomic<int64_t> may_keep{0};
};

struct alignas(64) Device {
  // What every request looks at comes first, on two cache lines.
  core::Ledger ledger;
  // When the figures must be looked at again; see quota.h.
  std::atomic<int64_t> committed_at_look{0};
  std::atomic<int64_t> look_above{0};  // committed bytes: what is granted up to there is small against the room then
  std::atomic<uint64_t> look_due_ns{0};
  std::atomic<bool> stale{false};
  std::atomic<bool> inexact{false};       // the last look fell between calls under way
  std::atomic<bool> active{false};        // gauges and truth are set up
  std::atomic<bool> nothing_kept{false};  // somebody is short of room: no promise is kept

  // What `gpucap set` asked for, as far as it was taken over; see limits.h.
  const gpucap_control* control = nullptr;
  std::atomic<uint64_t> control_seen{0};
  // The budget that it shares with other processes, and the number of this device there; null: none.
  wire::GroupMember* group = nullptr;
  // In the segment, or in memory of our own where there is none.
  gpucap_device* gauge = nullptr;
  gpucap_lane* lanes = nullptr;
  gpucap_api_counter* counters = nullptr;  // of lane 0; the others follow
  uint32_t api_count = 0;
  uint32_t ordinal = 0;
  int group_number = 0;
  uint32_t limit_source = GPUCAP_LIMIT_FROM_NOWHERE;

  // A look at NVML is exact when no call was under way and none has begun meanwhile.
  Flights flights[kLanes];
  core::BlockMap blocks;

  std::atomic<int64_t> managed_bytes{0};  // within the ledger's committed bytes, but not within NVML's figure
  std::atomic<uint64_t> looked_at_ns{0};
  std::atomic<uint64_t> look_put_off_ns{0};       // until when looks are paid for
  std::atomic<uint64_t> look_longest_ns{0};       // that NVML took for an answer of late
  std::atomic<uint64_t> driver_changed_at_ns{0};  // when a look last found another share of the driver's
  std::atomic<int64_t> driver_exact{0};
  std::atomic<uint64_t> peak_bytes{0};
  std::mutex look_lock;  // one reading of NVML at a time, so that an older one never overwrites a newer
  // Held while one thread looks, reclaims and refuses; the others wait here rather than refuse on half a figure.
  std::mutex slow;
  std::atomic<bool> in_line{false};  // one thread stands in the group's line; others of the process stand behind it

  // What the policy file allows at most, to this process and to its group.
  uint64_t policy_limit = core::kNoLimit;
  uint64_t group_policy_limit = core::kNoLimit;

  void* truth_handle = nullptr;            // the truth reader's own name of the device
  std::atomic<bool> truth_missing{false};  // NVML turned out to have no figure for this process: not asked again
  uint8_t uuid[16] = {};
  char uuid_text[48] = {};  // "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
  char name[64] = {};
  char pci_bus_id[32] = {};  // "0000:1b:00.0"; empty: unknown
  uint64_t physical_bytes = 0;
};
static_assert(sizeof(core::Ledger) == 32);

// The word is there for others before the driver changes what NVML sees: it does so within system calls that take the
// kernel's locks, where x86 at the latest lets go of its stores, in their order. Others need the fence.
inline void begin_flight(Device& device) {
  const uint32_t lane = this_thread().lane;
  std::atomic<uint64_t>& begun = device.flights[lane].begun;
  if (lane == kSharedLane) [[unlikely]] {
    begun.fetch_add(1);
    return;
  }
  begun.store(begun.load(std::memory_order_relaxed) + 1, std::memory_order_release);
#if defined(__x86_64__)
  std::atomic_signal_fence(std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}
inline void end_flight(Device& device) {
  const uint32_t lane = lane_of_thread();
  std::atomic<uint64_t>& ended = device.flights[lane].ended;
  if (lane == kSharedLane) [[unlikely]] {
    ended.fetch_add(1);
  } else {
    ended.store(ended.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
}

inline uint64_t flights_begun(const Device& device) {
  uint64_t sum = 0;
  for (const Flights& lane : device.flights) sum += lane.begun.load(std::memory_order_acquire);
  return sum;
}
// Of flights_begun() read before: whether all of them had ended. Calls that began and ended since may make that seem so
// where it is not; who sees flights_begun() unchanged afterwards knows that there were none.
inline bool all_ended(const Device& device, uint64_t begun) {
  uint64_t sum = 0;
  for (const Flights& lane : device.flights) sum += lane.ended.load(std::memory_order_acquire);
  return sum == begun;
}

}  // namespace gpucap
