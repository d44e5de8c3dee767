// What is said, counted and told of a request that does not fit: see quota.h.
#include <unistd.h>

#include <cstdio>

#include "shim/process/clock.h"
#include "shim/process/limits.h"
#include "shim/process/log.h"
#include "shim/process/quota_parts.h"

namespace gpucap {
namespace {

struct Text : core::BytesText {
  explicit Text(int64_t bytes) : BytesText(bytes) {}
  explicit Text(uint64_t bytes) : BytesText(static_cast<int64_t>(bytes > INT64_MAX ? INT64_MAX : bytes)) {}
};

Event event_of(uint16_t api, gpucap_operation operation, uint64_t bytes) {
  Event event;
  event.api = api;
  event.operation = operation;
  event.bytes = bytes;
  event.refused_by = obstacle;
  return event;
}

}  // namespace

RequestName::RequestName(Process& process, uint16_t api) {
  const uint16_t origin = thread_words.origin;
  if (origin != 0 && origin < process.api_count()) {
    snprintf(text, sizeof(text), "%s (%s)", process.api_name(origin), process.api_name(api));
  } else {
    snprintf(text, sizeof(text), "%s", process.api_name(api));
  }
}

ObstacleText::ObstacleText(Process& process, Device& device, gpucap_refused_by by, bool enforced) {
  const gpucap_device& gauge = *device.gauge;
  const bool policy_only = enforced && observes(process);
  if (by == GPUCAP_REFUSED_BY_GROUP && device.group != nullptr) {
    const auto use = device.group->use(device.group_number, true);
    const uint64_t limit = policy_only ? enforced_group_limit(process, device) : standing_group_limit(device);
    snprintf(text, sizeof(text), "group '%s' of %s has %s used by %d process%s, of which this one %s",
             device.group->name(), Text(limit).text, Text(use.bytes).text, use.members, use.members == 1 ? "" : "es",
             Text(device.ledger.used()).text);
    return;
  }
  const uint64_t limit = policy_only ? enforced_limit(process, device) : device.ledger.limit();
  const int64_t used = device.ledger.used();
  const int64_t taken = used + device.ledger.reserved();
  const uint64_t left =
      static_cast<int64_t>(limit > INT64_MAX ? INT64_MAX : limit) > taken ? limit - static_cast<uint64_t>(taken) : 0;
  const int64_t data = gauge.linear_bytes + gauge.array_bytes + gauge.vmm_bytes + gauge.managed_bytes;
  snprintf(text, sizeof(text), "the cap of %s has %s used (data %s, pools %s, driver %s), %s left", Text(limit).text,
           Text(used).text, Text(data).text, Text(gauge.pool_bytes).text, Text(device.ledger.driver()).text,
           Text(left).text);
}

void refuse(Process& process, Device& device, uint16_t api, uint64_t bytes, int32_t result) {
  gpucap_device& gauge = *device.gauge;
  add(gauge.refused_count, 1);
  add(gauge.refused_bytes, bytes);
  set(gauge.last_refused_bytes, bytes);
  set(gauge.last_refused_by, static_cast<uint32_t>(obstacle));
  set(gauge.last_refused_api, uint32_t{api});
  set(gauge.last_refused_origin, uint32_t{thread_words.origin});
  set(gauge.last_refused_monotonic_ns, monotonic_ns());
  Event event = event_of(api, GPUCAP_OP_REFUSE, bytes);
  event.result = result;
  process.telemetry().record(device, event);
  if (!log_enabled(LogLevel::kWarn)) return;
  char size[48] = "";
  if (bytes != 0) snprintf(size, sizeof(size), " of %s", Text(bytes).text);
  log_line_rarely(LogLevel::kWarn, "refused %s%s on GPU %u: %s [pid %ld]", RequestName(process, api).text, size,
                  device.ordinal, ObstacleText(process, device, obstacle, true).text, static_cast<long>(getpid()));
}

void observe(Process& process, Device& device, uint16_t api, uint64_t bytes) {
  add(device.gauge->observed_count, 1);
  add(device.gauge->observed_bytes, bytes);
  process.telemetry().record(device, event_of(api, GPUCAP_OP_OBSERVE, bytes));
  if (!log_enabled(LogLevel::kInfo)) return;
  log_line_rarely(LogLevel::kInfo, "would have refused %s of %s on GPU %u: %s [pid %ld]",
                  RequestName(process, api).text, Text(bytes).text, device.ordinal,
                  ObstacleText(process, device, obstacle, false).text, static_cast<long>(getpid()));
}

gpucap_refused_by over_limit(Process& process, Device& device, uint16_t api, uint64_t bytes) {
  const auto used = static_cast<uint64_t>(device.ledger.used());
  const auto over = [&](uint64_t own, uint64_t group) {
    if (own != core::kNoLimit && used > own) return GPUCAP_REFUSED_BY_CAP;
    if (device.group == nullptr || group == core::kNoLimit) return GPUCAP_REFUSED_BY_NOTHING;
    auto use = device.group->use(device.group_number, false);
    if (use.bytes > 0 && static_cast<uint64_t>(use.bytes) > group) use = device.group->use(device.group_number, true);
    return use.bytes > 0 && static_cast<uint64_t>(use.bytes) > group ? GPUCAP_REFUSED_BY_GROUP
                                                                     : GPUCAP_REFUSED_BY_NOTHING;
  };
  obstacle = over(device.ledger.limit(), standing_group_limit(device));
  if (obstacle == GPUCAP_REFUSED_BY_NOTHING || !observes(process)) return obstacle;
  const gpucap_refused_by truly = over(enforced_limit(process, device), enforced_group_limit(process, device));
  if (truly == GPUCAP_REFUSED_BY_NOTHING) observe(process, device, api, bytes);
  return truly;
}

}  // namespace gpucap
