// Deciding: may this request have that much memory? The fast path is the ledger's own arithmetic, and the group's where
// the process is in one. Before anything is refused, and whenever the figures may have gone stale, NVML is asked what
// the process really holds, and the difference to what is charged becomes the driver's share. Called by the driver
// hooks from any thread.
#pragma once

#include <cstdint>

#include "shim/process/clock.h"
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

// Takes over what `gpucap set` asked for since the last time, never above what the policy file allows.
__attribute__((cold)) void take_over_limit(Process& process, Device& device, uint64_t sequence);
inline void refresh_limit(Process& process, Device& device) {
  if (device.control == nullptr) return;
  const uint64_t sequence =
      std::atomic_ref<uint64_t>(const_cast<uint64_t&>(device.control->sequence)).load(std::memory_order_acquire);
  if (sequence != device.control_seen.load(std::memory_order_relaxed)) [[unlikely]]
    take_over_limit(process, device, sequence);
}

// One step of a stream-ordered pool: what the driver could have taken unseen since the last look is of that size at
// least.
inline constexpr uint64_t kSmallRequest = uint64_t{32} << 20;

// Whether NVML must be asked before so much may be granted. The coarse clock is some milliseconds behind, which does no
// harm: a figure may be that much older.
[[nodiscard]] inline bool needs_look(Device& device, uint64_t bytes) {
  const uint64_t now_ns = thread_words.coarse_ns = coarse_ns();
  if (device.stale.load(std::memory_order_relaxed)) [[unlikely]]
    return true;
  if (now_ns > device.look_due_ns.load(std::memory_order_relaxed)) [[unlikely]]
    return true;
  // A small request where nothing more is held than at the look: the same room is there, and the ledger says whether it
  // is enough.
  const int64_t committed = device.ledger.committed();
  if (committed <= device.committed_at_look.load(std::memory_order_relaxed) && bytes <= kSmallRequest) return false;
  const int64_t room = device.look_above.load(std::memory_order_relaxed) - committed;
  return room < 0 || bytes > static_cast<uint64_t>(room);
}

// A charge that shrinks by itself (a pool) leaves the driver's share wrong until the next look, and marks it stale
// first. Whoever was granted memory on the shrunk charge sees the mark.
[[nodiscard]] inline bool try_reserve_fresh(Device& device, uint64_t bytes, uint64_t bound) {
  if (!device.ledger.try_reserve_below(bytes, bound)) return false;
  if (!device.stale.load()) [[likely]]
    return true;
  device.ledger.settle(bytes, 0);
  return false;
}

inline void count_promised(Device& device, int64_t delta) {
  const uint32_t lane = this_thread().lane;  // so that a promise ends in the lane that it began in
  add_in_lane(device.lanes[lane].reserved_bytes, delta, lane);
}

// Of a lane's own `unasked`, with so much kept: who has taken the promises that they stood for has asked.
[[nodiscard]] inline int64_t unasked_of(Flights& own, int64_t kept) {
  const int64_t count = own.unasked.load(std::memory_order_relaxed);
  if (kept >= count * static_cast<int64_t>(kSmallRequest)) [[likely]]
    return count;
  own.unasked.store(0, std::memory_order_relaxed);
  own.may_keep.store(0, std::memory_order_relaxed);  // for want of room
  return 0;
}

// Takes so much from the promises that the thread kept of earlier requests, if it is there to spare.
[[nodiscard]] inline bool take_kept_promise(Device& device, uint64_t bytes) {
  const uint32_t lane = lane_of_thread();
  if (lane == kSharedLane) return false;
  Flights& own = device.flights[lane];
  const auto wanted = static_cast<int64_t>(bytes);
  int64_t kept = own.kept_promise.load(std::memory_order_relaxed);
  if (kept < wanted + unasked_of(own, kept) * static_cast<int64_t>(kSmallRequest)) return false;
  return own.kept_promise.compare_exchange_strong(kept, kept - wanted);  // nobody took them in between
}

// The common case of reserve(), built into its callers: no group, figures that hold, and room. `or_kept`: a promise
// that the thread keeps will do.
[[nodiscard, gnu::hot, gnu::always_inline]] inline bool try_quickly(Process& process, Device& device, uint64_t bytes,
                                                                    bool or_kept = false) {
  if (bytes == 0 || device.group != nullptr || !device.active.load(std::memory_order_acquire)) return false;
  refresh_limit(process, device);
  if (needs_look(device, bytes)) [[unlikely]]
    return false;
  const bool kept = or_kept && take_kept_promise(device, bytes);
  if (kept && !device.ledger.within(device.ledger.limit())) [[unlikely]] {
    device.ledger.settle(bytes, 0);  // made when there was more room
    return false;
  }
  if (!kept && !try_reserve_fresh(device, bytes, device.ledger.limit())) return false;
  count_promised(device, static_cast<int64_t>(bytes));
  return true;
}

// Promises the bytes on the device; a grant must be followed by settle() once the driver has answered. Blocks where
// GPUCAP_ON_LIMIT=wait says so and the group's budget is used up.
[[nodiscard]] Verdict reserve_otherwise(Process& process, Device& device, const Request& request);
[[nodiscard]] inline Verdict reserve(Process& process, Device& device, const Request& request) {
  return try_quickly(process, device, request.bytes) ? Verdict::kGranted : reserve_otherwise(process, device, request);
}

// The driver's answer: of the promise, `taken` bytes became real and are of this kind.
void settle_otherwise(Device& device, gpucap_kind kind, uint64_t promised, uint64_t taken);
[[gnu::hot]] inline void settle(Device& device, gpucap_kind kind, uint64_t promised, uint64_t taken) {
  if (taken != 0 || device.group != nullptr) return settle_otherwise(device, kind, promised, taken);
  if (promised == 0) return;
  device.ledger.settle(promised, 0);
  count_promised(device, -static_cast<int64_t>(promised));
}

// How much a lane may keep: so much that all of them together leave half of the room, a GiB at most. 0 where room is
// scarce.
[[nodiscard]] int64_t most_kept(const Device& device);

// Keeps a promise for the thread's later requests while there is plenty of room, which spares them a word that all
// threads write to. `kept` is what the lane was seen to have. False where it must end instead.
[[nodiscard]] inline bool try_keep(Device& device, Flights& own, int64_t kept, uint64_t promised) {
  if (promised == 0 || promised > kSmallRequest) return false;
  const auto bytes = static_cast<int64_t>(promised);
  if (kept + bytes > own.may_keep.load(std::memory_order_relaxed) ||
      device.nothing_kept.load(std::memory_order_relaxed)) [[unlikely]] {
    const int64_t most_now = most_kept(device);  // looked at again when it is used up
    own.may_keep.store(most_now, std::memory_order_relaxed);
    if (kept + bytes > most_now) return false;
  }
  if (kept == 0) {
    own.kept_promise.store(bytes, std::memory_order_release);  // nobody else makes something of nothing
  } else {
    own.kept_promise.fetch_add(bytes);
  }
  count_promised(device, -bytes);
  return true;
}

// A promise of which nothing was needed. Nothing may have been charged on it meanwhile: that would count twice.
inline void keep_promise(Device& device, gpucap_kind kind, uint64_t promised) {
  const uint32_t lane = lane_of_thread();
  Flights& own = device.flights[lane];
  if (lane == kSharedLane || !try_keep(device, own, own.kept_promise.load(std::memory_order_relaxed), promised))
    settle(device, kind, promised, 0);
}

// The same where it is likely that nothing was needed, and the driver was not asked: the promise is kept and spent on
// nothing else until it was. False where that is not possible: it must be asked now. One promise is left to be spent.
[[nodiscard]] inline bool keep_unasked(Device& device, uint64_t promised) {
  Flights& own = device.flights[lane_of_thread()];
  const int64_t kept = own.kept_promise.load(std::memory_order_relaxed), count = unasked_of(own, kept);
  const int64_t most = own.may_keep.load(std::memory_order_relaxed);
  // Never in the shared lane, which may keep nothing.
  if ((count + 2) * static_cast<int64_t>(kSmallRequest) > most || !try_keep(device, own, kept, promised)) return false;
  own.unasked.store(count + 1, std::memory_order_relaxed);
  return true;
}
[[nodiscard]] inline bool has_unasked(const Device& device) {
  return device.flights[lane_of_thread()].unasked.load(std::memory_order_relaxed) != 0;
}
// The driver was asked what everything on the device has taken, after all of the thread's own requests.
inline void all_asked(Device& device) { device.flights[lane_of_thread()].unasked.store(0, std::memory_order_relaxed); }
// Ends what all threads keep, once the driver was asked what they stand for.
void end_kept_promises(Process& process, Device& device);
// What they keep at this moment: within the ledger's reserved bytes, but promised to nobody who needs it.
[[nodiscard]] inline int64_t kept_promises(const Device& device) {
  int64_t bytes = 0;
  for (const Flights& lane : device.flights) bytes += lane.kept_promise.load(std::memory_order_relaxed);
  return bytes;
}
[[nodiscard]] inline bool any_unasked(const Device& device) {
  int64_t count = 0;
  for (const Flights& lane : device.flights) count += lane.unasked.load(std::memory_order_relaxed);
  return count != 0;
}

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
// How many looks have begun and ended in this process, of all devices; and whether one has been under way since then.
struct LookTimes {
  uint64_t begun = 0, ended = 0;
};
[[nodiscard]] LookTimes look_times();
[[nodiscard]] bool looked_since(const LookTimes& then);
// look(), if something may have changed or the last look is due to be made again.
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

inline void count_live(Device& device, int64_t delta) {
  const uint32_t lane = lane_of_thread();
  add_in_lane(device.lanes[lane].live_count, delta, lane);
}

}  // namespace gpucap
