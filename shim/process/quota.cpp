#include "shim/process/quota.h"

#include <cerrno>

#include "shim/process/clock.h"
#include "shim/process/limits.h"
#include "shim/process/quota_parts.h"
#include "wire/steps.h"

namespace gpucap {

constinit thread_local gpucap_refused_by obstacle = GPUCAP_REFUSED_BY_NOTHING;

namespace {

using Mode = core::OnLimitValue::Mode;

int64_t* gauge_of(gpucap_device& gauge, gpucap_kind kind) {
  switch (kind) {
    case GPUCAP_KIND_LINEAR:
      return &gauge.linear_bytes;
    case GPUCAP_KIND_ARRAY:
      return &gauge.array_bytes;
    case GPUCAP_KIND_POOL:
      return &gauge.pool_bytes;
    case GPUCAP_KIND_VMM:
      return &gauge.vmm_bytes;
    case GPUCAP_KIND_MANAGED:
      return &gauge.managed_bytes;
    case GPUCAP_KIND_NONE:
    case GPUCAP_KIND_CONTEXT:
      break;
  }
  return nullptr;
}

uint64_t ticket_of(const Process& process, const Device& device) {
  // Only who is ready to wait stands behind those who do. Whoever has memory there already does not: they may be
  // waiting for just that memory, which comes free when this program gets on.
  const bool newcomer = device.ledger.committed() == 0;
  return process.config().on_limit.mode == Mode::kWait && newcomer ? wire::GroupMember::kLast
                                                                   : wire::GroupMember::kNoQueue;
}

// Before anything is refused: what the driver keeps for later is given back, and NVML is asked.
bool reserve_slow(Process& process, Device& device, const Request& request, uint64_t ticket) {
  const int saved = errno;
  bool granted = false;
  {
    const std::lock_guard guard(device.slow);
    const Bounds bounds = {device.ledger.limit(), device.group_policy_limit};
    const auto attempt = [&] {
      obstacle = try_both(device, request.bytes, bounds, ticket, true);
      return obstacle == GPUCAP_REFUSED_BY_NOTHING;
    };
    // Another thread may have looked while we waited.
    granted = !needs_look(device, request.bytes) && attempt();
    bool reclaimed = request.reclaim == nullptr;
    for (int tries = 0; !granted && tries < 5; ++tries) {
      if (tries == 1) device.nothing_kept.store(true);
      // What the program keeps for later goes only if the promises that its threads keep are not enough.
      if (!reclaimed && (tries > 1 || (tries == 1 && kept_promises(device) == 0))) {
        request.reclaim(process, device, request.reclaim_argument);
        reclaimed = true;
      }
      if (tries >= 1) end_kept_promises(process, device);  // before the look, which then knows what is really promised
      look(process, device, true);
      if (tries >= 1) end_kept_promises(process, device);  // of those who were about to keep one
      granted = attempt();
    }
    device.nothing_kept.store(false);
  }
  errno = saved;
  return granted;
}

// Over the limit in observe mode: let through as far as the policy file allows.
bool let_through(Process& process, Device& device, const Request& request) {
  if (!device.ledger.try_reserve_below(request.bytes, enforced_limit(process, device))) return false;
  if (device.group != nullptr) {
    const uint64_t bound = enforced_group_limit(process, device);
    const auto bytes = static_cast<int64_t>(request.bytes);
    device.group->change(device.group_number, bytes);
    const auto use = bound == core::kNoLimit ? wire::GroupMember::Use() : device.group->use(device.group_number, true);
    if (bound != core::kNoLimit && use.bytes > 0 && static_cast<uint64_t>(use.bytes) > bound) {
      device.group->change(device.group_number, -bytes);
      device.ledger.settle(request.bytes, 0);
      return false;
    }
  }
  observe(process, device, request.api, request.bytes);
  return true;
}

}  // namespace

gpucap_refused_by try_both(Device& device, uint64_t bytes, const Bounds& bounds, uint64_t ticket, bool carefully) {
  if (!try_reserve_fresh(device, bytes, bounds.own)) return GPUCAP_REFUSED_BY_CAP;
  if (device.group == nullptr) return GPUCAP_REFUSED_BY_NOTHING;
  GPUCAP_STEP("quota:before-group");
  const auto answer = carefully ? device.group->try_reserve_carefully(device.group_number, bytes, bounds.group, ticket)
                                : device.group->try_reserve(device.group_number, bytes, bounds.group, ticket);
  if (answer == wire::GroupMember::Answer::kGranted) return GPUCAP_REFUSED_BY_NOTHING;
  device.ledger.settle(bytes, 0);
  return GPUCAP_REFUSED_BY_GROUP;
}

Verdict reserve_otherwise(Process& process, Device& device, const Request& request) {
  process.activate(device);
  if (request.bytes == 0) {  // takes nothing new, so nothing to decide
    look_if_stale(process, device);
    return Verdict::kGranted;
  }
  refresh_limit(process, device);
  const Bounds bounds = {device.ledger.limit(), device.group_policy_limit};
  const uint64_t ticket = device.group == nullptr ? 0 : ticket_of(process, device);
  bool granted = !needs_look(device, request.bytes) &&
                 try_both(device, request.bytes, bounds, ticket, false) == GPUCAP_REFUSED_BY_NOTHING;
  if (!granted) granted = reserve_slow(process, device, request, ticket);
  if (!granted && request.to_the_end) {
    const Mode mode = process.config().on_limit.mode;
    if (mode == Mode::kObserve) granted = let_through(process, device, request);
    if (mode == Mode::kWait && obstacle == GPUCAP_REFUSED_BY_GROUP)
      granted = wait_in_line(process, device, request) == Verdict::kGranted;
  }
  if (!granted) return Verdict::kRefused;
  count_promised(device, static_cast<int64_t>(request.bytes));
  return Verdict::kGranted;
}

[[gnu::hot]] void settle_otherwise(Device& device, gpucap_kind kind, uint64_t promised, uint64_t taken) {
  if (taken != 0) {
    if (kind == GPUCAP_KIND_MANAGED) device.managed_bytes.fetch_add(static_cast<int64_t>(taken));
    if (int64_t* gauge = gauge_of(*device.gauge, kind)) add(*gauge, static_cast<int64_t>(taken));
  }
  device.ledger.settle(promised, taken);
  GPUCAP_STEP("settle:before-group");
  if (device.group != nullptr && promised != taken)
    device.group->change(device.group_number, static_cast<int64_t>(taken) - static_cast<int64_t>(promised));
  GPUCAP_STEP("settle:done");
  if (promised != 0) count_promised(device, -static_cast<int64_t>(promised));
  if (taken != 0) raise_peak(device);
}

int64_t most_kept(const Device& device) {
  constexpr uint64_t kMost = uint64_t{1} << 30, kPlenty = uint64_t{2} << 30;
  if (device.group != nullptr || device.nothing_kept.load(std::memory_order_relaxed)) return 0;
  const uint64_t limit = device.ledger.limit(), used = static_cast<uint64_t>(device.ledger.used());
  if (limit == core::kNoLimit) return kMost;
  if (used + kPlenty >= limit) return 0;
  const uint32_t lanes = lanes_given();
  const uint64_t share = (limit - used) / (lanes == 0 ? 2 : 2 * lanes);
  return static_cast<int64_t>(share < kMost ? share : kMost);
}

void end_kept_promises(Process& process, Device& device) {
  int64_t kept = 0;
  for (Flights& lane : device.flights) kept += lane.kept_promise.exchange(0);
  if (kept == 0) return;
  process.bring_up_to_date(device);  // charged before the promises go
  device.ledger.settle(static_cast<uint64_t>(kept), 0);
}

[[gnu::hot]] void charge(Device& device, gpucap_kind kind, int64_t delta) {
  if (delta == 0) return;
  if (kind == GPUCAP_KIND_MANAGED) device.managed_bytes.fetch_add(delta);
  if (int64_t* gauge = gauge_of(*device.gauge, kind)) add(*gauge, delta);
  device.ledger.charge(delta);
  GPUCAP_STEP("charge:before-group");
  if (device.group != nullptr) device.group->change(device.group_number, delta);
  GPUCAP_STEP("charge:done");
  if (delta > 0) raise_peak(device);
}

void set_driver_share(Device& device, int64_t bytes) {
  const int64_t before = device.ledger.exchange_driver(bytes);
  GPUCAP_STEP("driver-share:before-group");
  if (device.group != nullptr) device.group->change(device.group_number, bytes - before);
  GPUCAP_STEP("driver-share:done");
}

// By the last exact figure of the driver's share: an inexact one can be too high for a moment, and a peak stays.
[[gnu::hot]] void raise_peak(Device& device) {
  const int64_t held = device.ledger.committed() + device.driver_exact.load(std::memory_order_relaxed);
  const auto used = static_cast<uint64_t>(held < 0 ? 0 : held);
  uint64_t peak = device.peak_bytes.load(std::memory_order_relaxed);
  while (used > peak) {
    if (!device.peak_bytes.compare_exchange_weak(peak, used, std::memory_order_relaxed)) continue;
    set(device.gauge->peak_bytes, used);
    set(device.gauge->peak_monotonic_ns, monotonic_ns());
    return;
  }
}

}  // namespace gpucap
