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

void raise_peak(Device& device) {
  const auto used = static_cast<uint64_t>(device.ledger.used());
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
  if (coarse_ns() - device.looked_at_ns.load(std::memory_order_relaxed) >= kLookInterval_ns) return true;
  if (!device.ledger.limited()) return false;
  const int64_t grown = device.ledger.committed() - device.committed_at_look.load(std::memory_order_relaxed);
  const int64_t asked = bytes > uint64_t{1} << 62 ? INT64_MAX / 2 : static_cast<int64_t>(bytes);
  return grown + asked > static_cast<int64_t>(device.headroom_at_look.load(std::memory_order_relaxed) / 2);
}

void take_note(Process& process, Device& device, int64_t truth, int64_t driver) {
  const int64_t before = device.ledger.driver();
  device.ledger.set_driver(driver);
  device.committed_at_look.store(device.ledger.committed(), std::memory_order_relaxed);
  device.headroom_at_look.store(device.ledger.headroom() > INT64_MAX ? INT64_MAX : device.ledger.headroom(),
                                std::memory_order_relaxed);
  process.telemetry().looked(device, truth, monotonic_ns());
  raise_peak(device);
  if (driver == before) return;
  Event event;
  event.operation = GPUCAP_OP_DRIVER;
  event.kind = GPUCAP_KIND_CONTEXT;
  event.bytes = static_cast<uint64_t>(driver < 0 ? 0 : driver);
  process.telemetry().record(device, event);
}

// One reading. True if it is exact; otherwise the figure can only have raised the driver's share.
bool look_once(Process& process, Device& device, bool* known) {
  device.stale.store(false, std::memory_order_relaxed);
  device.looked_at_ns.store(coarse_ns(), std::memory_order_relaxed);
  const uint64_t flights_before = device.flights.load();
  const int64_t truth = process.truth().read(device);
  *known = truth >= 0;
  if (truth < 0) return true;
  const int64_t charged = device.ledger.committed() - device.managed_bytes.load();
  const bool exact = static_cast<uint32_t>(flights_before) == 0 && device.flights.load() == flights_before;
  if (exact) {
    take_note(process, device, truth, truth - charged);
    return true;
  }
  // Calls were under way: the truth may hold what is promised and not yet charged, and may lack what is charged and
  // already freed. What cannot be explained by promises is the driver's.
  const int64_t surely = truth - charged - device.ledger.reserved();
  if (surely > device.ledger.driver()) take_note(process, device, truth, surely);
  return false;
}

Verdict reserve_slow(Process& process, Device& device, uint64_t bytes, ReclaimFunction reclaim, void* argument) {
  const int saved = errno;
  Verdict verdict = Verdict::kRefused;
  {
    const std::lock_guard guard(device.slow);
    // Another thread may have looked while we waited.
    if (!needs_look(device, bytes) && device.ledger.try_reserve(bytes)) {
      verdict = Verdict::kGranted;
    } else {
      look(process, device, bytes > device.ledger.headroom());
      if (device.ledger.try_reserve(bytes)) {
        verdict = Verdict::kGranted;
      } else if (reclaim != nullptr) {
        reclaim(process, device, argument);
        look(process, device, true);
        if (device.ledger.try_reserve(bytes)) verdict = Verdict::kGranted;
      }
    }
  }
  errno = saved;
  return verdict;
}

}  // namespace

bool look(Process& process, Device& device, bool exact) {
  const int saved = errno;
  bool known = false;
  for (int tries = 0; tries < (exact ? kExactTries : 1); ++tries) {
    if (tries > 10)
      usleep(200);  // a free that waits for a kernel can keep a flight open: 8 ms in all, then go on without
    if (look_once(process, device, &known) || !known) break;
    if (tries <= 10) sched_yield();
  }
  errno = saved;
  return known;
}

void look_if_stale(Process& process, Device& device) {
  if (!device.active.load(std::memory_order_acquire) || !needs_look(device, 0)) return;
  look(process, device, false);
}

Verdict reserve(Process& process, Device& device, uint64_t bytes, ReclaimFunction reclaim, void* argument) {
  process.activate(device);
  if (bytes == 0) {  // takes nothing new, so nothing to decide
    look_if_stale(process, device);
    return Verdict::kGranted;
  }
  Verdict verdict = Verdict::kGranted;
  if (needs_look(device, bytes) || !device.ledger.try_reserve(bytes))
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
