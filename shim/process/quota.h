// Deciding: may this request have that much memory? The fast path is the ledger's own arithmetic. Before anything is
// refused, and whenever the figures may have gone stale, NVML is asked what the process really holds, and the
// difference to what is charged becomes the driver's share. Called by the driver hooks from any thread.
#pragma once

#include <cstdint>

#include "shim/process/process.h"

namespace gpucap {

enum class Verdict { kGranted, kRefused };

// What the caller can do to make room before a refusal (trim pools), on a device. May be null. Runs under device.slow.
using ReclaimFunction = void (*)(Process& process, Device& device, void* argument);

// Promises `bytes` on the device; a grant must be followed by settle() once the driver has answered.
[[nodiscard]] Verdict reserve(Process& process, Device& device, uint64_t bytes, ReclaimFunction reclaim = nullptr,
                              void* reclaim_argument = nullptr);

// The driver's answer: of the promise, `taken` bytes became real and are of this kind.
void settle(Device& device, gpucap_kind kind, uint64_t promised, uint64_t taken);
// Changes a charge outside of a promise: negative when memory went back.
void charge(Device& device, gpucap_kind kind, int64_t delta);

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

// Counts, logs and tells of a refusal by the cap. `what` names the request, for example "cuMemAlloc_v2".
void refuse(Process& process, Device& device, uint16_t api, const char* what, uint64_t bytes, int32_t result);

inline void count_live(Device& device, int delta) { add(device.gauge->live_count, delta); }

}  // namespace gpucap
