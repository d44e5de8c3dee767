#include "shim/process/quota.h"

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "shim/process/clock.h"
#include "shim/process/log.h"

namespace gpucap {
namespace {

constexpr uint64_t kLookInterval_ns = 10'000'000;
constexpr uint64_t kInexactInterval_ns = 1'000'000;
constexpr int kExactTries = 50;

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

// By the last exact figure of the driver's share: an inexact one can be too high for a moment, and a peak stays.
void raise_peak(Device& device) {
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

bool needs_look(Device& device, uint64_t bytes) {
  if (device.stale.load(std::memory_order_relaxed)) return true;
  const uint64_t interval = device.inexact.load(std::memory_order_relaxed) ? kInexactInterval_ns : kLookInterval_ns;
  if (coarse_ns() - device.looked_at_ns.load(std::memory_order_relaxed) >= interval) return true;
  if (!device.ledger.limited()) return false;
  const int64_t grown = device.ledger.committed() - device.committed_at_look.load(std::memory_order_relaxed);
  const int64_t asked = bytes > uint64_t{1} << 62 ? INT64_MAX / 2 : static_cast<int64_t>(bytes);
  return grown + asked > static_cast<int64_t>(device.headroom_at_look.load(std::memory_order_relaxed) / 2);
}

void take_note(Process& process, Device& device, int64_t truth, int64_t driver) {
  const int64_t before = device.ledger.driver();
  device.ledger.set_driver(driver);
  const uint64_t headroom = device.ledger.headroom();
  device.committed_at_look.store(device.ledger.committed(), std::memory_order_relaxed);
  device.headroom_at_look.store(headroom > INT64_MAX ? INT64_MAX : headroom, std::memory_order_relaxed);
  process.telemetry().looked(device, truth, monotonic_ns());
  if (driver == before) return;
  Event event;
  event.operation = GPUCAP_OP_DRIVER;
  event.kind = GPUCAP_KIND_CONTEXT;
  event.bytes = static_cast<uint64_t>(driver < 0 ? 0 : driver);
  process.telemetry().record(device, event);
}

// What the ledger says that NVML must see, and at most may see.
struct Expected {
  int64_t charged;
  int64_t at_most;
};
Expected expected_of(const Device& device) {
  const int64_t reserved = device.ledger.reserved();  // before the charges: see ledger.h
  const int64_t charged = device.ledger.committed() - device.managed_bytes.load();
  return {charged, charged + reserved};
}

// One reading, under the look lock. True if it is exact; otherwise the figure can only have raised the driver's share,
// and another look follows soon.
bool look_once(Process& process, Device& device, bool* known) {
  process.bring_up_to_date(device);
  device.stale.store(false);  // whatever marked it before is in the figures that are read from here on
  device.looked_at_ns.store(coarse_ns(), std::memory_order_relaxed);
  const uint64_t flights_before = device.flights.load();
  const Expected before = expected_of(device);
  const int64_t truth = device.truth_missing.load(std::memory_order_relaxed) ? -1 : process.truth().read(device);
  *known = truth >= 0;
  if (truth < 0) return true;
  const Expected after = expected_of(device);
  const bool moved = process.bring_up_to_date(device);
  const bool exact = !moved && static_cast<uint32_t>(flights_before) == 0 && device.flights.load() == flights_before;
  device.inexact.store(!exact, std::memory_order_relaxed);
  // NVML lists a process on a card only while it has a context there; memory made without one (cuMemCreate, pools) is
  // on the card all the same, and then our own books are all there is.
  const bool listed = truth != 0;
  if (exact) {
    const int64_t driver = listed ? truth - after.charged : 0;
    device.driver_exact.store(driver, std::memory_order_relaxed);
    take_note(process, device, truth, driver);
    raise_peak(device);
    return true;
  }
  // Calls were under way: the truth may hold what is only promised yet, and may lack what is charged and already freed.
  // What neither can explain is the driver's.
  const int64_t surely = truth - (before.at_most > after.at_most ? before.at_most : after.at_most);
  if (surely > device.ledger.driver()) take_note(process, device, truth, surely);
  return false;
}

// A charge that shrinks by itself (a pool) leaves the driver's share wrong until the next look, and marks it stale
// first. Whoever was granted memory on the shrunk charge sees the mark.
bool try_reserve_fresh(Device& device, uint64_t bytes) {
  if (!device.ledger.try_reserve(bytes)) return false;
  if (!device.stale.load()) return true;
  device.ledger.settle(bytes, 0);
  return false;
}

Verdict reserve_slow(Process& process, Device& device, uint64_t bytes, ReclaimFunction reclaim, void* argument) {
  const int saved = errno;
  Verdict verdict = Verdict::kRefused;
  {
    const std::lock_guard guard(device.slow);
    // Another thread may have looked while we waited.
    bool granted = !needs_look(device, bytes) && try_reserve_fresh(device, bytes);
    for (int tries = 0; !granted && tries < 4; ++tries) {
      if (tries == 1 && reclaim != nullptr) reclaim(process, device, argument);
      look(process, device, true);
      granted = try_reserve_fresh(device, bytes);
    }
    if (granted) verdict = Verdict::kGranted;
  }
  errno = saved;
  return verdict;
}

}  // namespace

bool look(Process& process, Device& device, bool exact) {
  if (!exact && !device.look_lock.try_lock()) return true;  // somebody is at it
  if (exact) device.look_lock.lock();
  const int saved = errno;
  bool known = false;
  for (int tries = 0; tries < (exact ? kExactTries : 1); ++tries) {
    if (tries > 10)
      usleep(200);  // a free that waits for a kernel can keep a flight open: 8 ms in all, then go on without
    if (look_once(process, device, &known) || !known) break;
    if (tries <= 10) sched_yield();
  }
  device.look_lock.unlock();
  errno = saved;
  return known;
}

void look_if_stale(Process& process, Device& device) {
  if (!device.active.load(std::memory_order_acquire) || !needs_look(device, 0)) return;
  look(process, device, false);
}

void look_at_rest(Process& process, Device& device) {
  if (!device.active.load(std::memory_order_acquire)) return;
  // After an inexact look, a moment without calls under way is the chance for an exact one.
  const bool chance =
      device.inexact.load(std::memory_order_relaxed) && static_cast<uint32_t>(device.flights.load()) == 0;
  if (chance || needs_look(device, 0)) look(process, device, false);
}

Verdict reserve(Process& process, Device& device, uint64_t bytes, ReclaimFunction reclaim, void* argument) {
  process.activate(device);
  if (bytes == 0) {  // takes nothing new, so nothing to decide
    look_if_stale(process, device);
    return Verdict::kGranted;
  }
  Verdict verdict = Verdict::kGranted;
  if (needs_look(device, bytes) || !try_reserve_fresh(device, bytes))
    verdict = reserve_slow(process, device, bytes, reclaim, argument);
  if (verdict == Verdict::kGranted) add(device.gauge->reserved_bytes, static_cast<int64_t>(bytes));
  return verdict;
}

void settle(Device& device, gpucap_kind kind, uint64_t promised, uint64_t taken) {
  if (taken != 0) {
    if (kind == GPUCAP_KIND_MANAGED) device.managed_bytes.fetch_add(static_cast<int64_t>(taken));
    if (int64_t* gauge = gauge_of(*device.gauge, kind)) add(*gauge, static_cast<int64_t>(taken));
  }
  device.ledger.settle(promised, taken);
  if (promised != 0) add(device.gauge->reserved_bytes, -static_cast<int64_t>(promised));
  if (taken != 0) raise_peak(device);
}

void charge(Device& device, gpucap_kind kind, int64_t delta) {
  if (delta == 0) return;
  if (kind == GPUCAP_KIND_MANAGED) device.managed_bytes.fetch_add(delta);
  if (int64_t* gauge = gauge_of(*device.gauge, kind)) add(*gauge, delta);
  device.ledger.charge(delta);
  if (delta > 0) raise_peak(device);
}

void refuse(Process& process, Device& device, uint16_t api, const char* what, uint64_t bytes, int32_t result) {
  gpucap_device& gauge = *device.gauge;
  add(gauge.refused_count, 1);
  add(gauge.refused_bytes, bytes);
  set(gauge.last_refused_bytes, bytes);
  set(gauge.last_refused_monotonic_ns, monotonic_ns());
  Event event;
  event.api = api;
  event.operation = GPUCAP_OP_REFUSE;
  event.bytes = bytes;
  event.result = result;
  process.telemetry().record(device, event);
  if (!log_enabled(LogLevel::kWarn)) return;
  const int64_t data = gauge.linear_bytes + gauge.array_bytes + gauge.vmm_bytes + gauge.managed_bytes;
  const auto text = [](auto value) { return core::BytesText(static_cast<int64_t>(value)); };
  char size[48] = "";
  if (bytes != 0) snprintf(size, sizeof(size), " of %s", text(bytes > INT64_MAX ? INT64_MAX : bytes).text);
  log_line_rarely(LogLevel::kWarn,
                  "refused %s%s on GPU %u: the cap of %s has %s used (data %s, pools %s, driver %s), %s left [pid %ld]",
                  what, size, device.ordinal, text(device.ledger.limit()).text, text(device.ledger.used()).text,
                  text(data).text, text(gauge.pool_bytes).text, text(device.ledger.driver()).text,
                  text(device.ledger.headroom()).text, static_cast<long>(getpid()));
}

}  // namespace gpucap
