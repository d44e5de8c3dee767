// Deciding: may this request have that much memory? The fast path is the ledger's own arithmetic, and the group's where
// the process is in one. Before anything is refused, and whenever the figures may have gone stale, NVML is asked what
// the process really holds, and the difference to what is charged becomes the driver's share. Called by the driver
// hooks from any thread.
#pragma once

#include <cstdint>

#include "shim/process/process.h"

namespace gpucap {

enum class Verdict { kGranted, kRefused };

// What the caller can do to make room before a refusal (trim pools), on a device. May be null. Runs under device.slow.
using ReclaimFunction = void (*)(Process& process, Device& device, void* argument);

struct Request {
  // Implicit: most requests are a number of bytes.
  Request(uint64_t wanted_bytes, uint16_t wanted_by = 0, ReclaimFunction function = nullptr, void* argument = nullptr)
      : bytes(wanted_bytes), api(wanted_by), reclaim(function), reclaim_argument(argument) {}
  uint64_t bytes;
  uint16_t api;
  ReclaimFunction reclaim;
  void* reclaim_argument;
  // False: the caller has another way if there is no room, so nobody waits, and nothing is let through to be observed.
  bool to_the_end = true;
};

// Promises the bytes on the device; a grant must be followed by settle() once the driver has answered. Blocks where
// GPUCAP_ON_LIMIT=wait says so and the group's budget is used up.
[[nodiscard]] Verdict reserve(Process& process, Device& device, const Request& request);

// The driver's answer: of the promise, `taken` bytes became real and are of this kind.
void settle(Device& device, gpucap_kind kind, uint64_t promised, uint64_t taken);
// Changes a charge outside of a promise: negative when memory went back.
void charge(Device& device, gpucap_kind kind, int64_t delta);
// The driver's own share as just measured.
void set_driver_share(Device& device, int64_t bytes);

inline bool observes(const Process& process) {
  return process.config().on_limit.mode == core::OnLimitValue::Mode::kObserve;
}

// What holds all the same where a process only observes: what the policy file sets, unless the file itself observes.
inline uint64_t enforced_limit(const Process& process, const Device& device) {
  return process.config().observes_policy ? core::kNoLimit : device.policy_limit;
}
inline uint64_t enforced_group_limit(const Process& process, const Device& device) {
  return process.config().observes_policy ? core::kNoLimit : device.group_policy_limit;
}

// What stands against what the process holds by now, if anything does: for calls whose size is only known afterwards.
// In observe mode it is noted and nothing stands in the way.
[[nodiscard]] gpucap_refused_by over_limit(Process& process, Device& device, uint16_t api, uint64_t bytes);

// Asks NVML now. `exact` waits a little for a moment with no call in the driver, and is for use before a refusal;
// otherwise a figure taken while calls are under way can only raise the driver's share. Returns false where NVML has no
// figure.
bool look(Process& process, Device& device, bool exact);
// look(), if something may have changed or the last look is more than 10 ms old.
void look_if_stale(Process& process, Device& device);
// The same after a synchronise, where a program comes to rest and others will look at its figures.
void look_at_rest(Process& process, Device& device);
// Something may have taken or given back memory that we did not see: look before the next grant.
inline void mark_stale(Device& device) { device.stale.store(true); }

// Counts, logs and tells of a refusal; by what is known from the thread's latest reserve() or over_limit().
void refuse(Process& process, Device& device, uint16_t api, uint64_t bytes, int32_t result);

// The driver has no room for what the limits allow: the card is full. In wait mode, blocks until it may have room and
// answers true: ask the driver again. `*began_ns` is 0 before the first time.
[[nodiscard]] bool wait_for_card(Process& process, Device& device, uint16_t api, uint64_t bytes, uint64_t* began_ns);

inline void count_live(Device& device, int delta) { add(device.gauge->live_count, delta); }

}  // namespace gpucap
