#include "shim/process/limits.h"

#include "shim/process/log.h"
#include "shim/process/quota_parts.h"

namespace gpucap {
namespace {

// The limits as a program must live with them: in observe mode those of the policy file alone.
uint64_t own_limit(const Process& process, const Device& device) {
  return observes(process) ? enforced_limit(process, device) : device.ledger.limit();
}
uint64_t group_limit(const Process& process, const Device& device) {
  if (device.group == nullptr) return core::kNoLimit;
  return observes(process) ? enforced_group_limit(process, device) : standing_group_limit(device);
}

uint64_t left_of(uint64_t limit, int64_t used) {
  if (limit == core::kNoLimit || used < 0) return limit;
  return static_cast<uint64_t>(used) >= limit ? 0 : limit - static_cast<uint64_t>(used);
}

}  // namespace

void take_over_limit(Process& process, Device& device, uint64_t sequence) {
  if (device.control_seen.exchange(sequence) == sequence) return;  // another thread was faster
  uint64_t asked = std::atomic_ref<uint64_t>(const_cast<uint64_t&>(device.control->limit_bytes[device.ordinal])).load();
  if (asked > device.policy_limit) asked = device.policy_limit;
  if (asked == device.ledger.limit()) return;
  device.ledger.set_limit(asked);
  mark_stale(device);
  set(device.gauge->limit_bytes, asked);
  set(device.gauge->limit_source, uint32_t{GPUCAP_LIMIT_FROM_CONTROL});
  Event event;
  event.operation = GPUCAP_OP_LIMIT;
  event.bytes = asked;
  process.telemetry().record(device, event);
  if (asked == core::kNoLimit) {
    log_line(LogLevel::kInfo, "GPU %u: the limit was taken away from outside", device.ordinal);
  } else {
    log_line(LogLevel::kInfo, "GPU %u: the limit was changed from outside to %s", device.ordinal,
             core::BytesText(static_cast<int64_t>(asked)).text);
  }
}

uint64_t room_in_group(Device& device) {
  return left_of(standing_group_limit(device), device.group->use(device.group_number, false).bytes);
}

void publish_group(Device& device) {
  const int64_t used = device.group->use(device.group_number, false).bytes;
  set(device.gauge->group_limit_bytes, standing_group_limit(device));
  set(device.gauge->group_used_bytes, static_cast<uint64_t>(used < 0 ? 0 : used));
}

Shown shown_memory(Process& process, Device& device) {
  refresh_limit(process, device);
  const uint64_t own = own_limit(process, device);
  const uint64_t group = group_limit(process, device);
  if (own == core::kNoLimit && group == core::kNoLimit) return {};
  look_if_stale(process, device);
  Shown shown;
  shown.bounded = true;
  if (any_unasked(device)) [[unlikely]] {
    process.bring_up_to_date(device);
    all_asked(device);
  }
  shown.used_bytes = static_cast<uint64_t>(device.ledger.used());
  shown.total_bytes = own < group ? own : group;
  const int64_t kept = kept_promises(device);  // first: one that is taken meanwhile is then counted as needed
  const int64_t promised = device.ledger.reserved() - kept;
  shown.free_bytes = left_of(own, device.ledger.used() + (promised < 0 ? 0 : promised));
  if (device.group == nullptr) return shown;
  const uint64_t group_free = left_of(group, device.group->use(device.group_number, false).bytes);
  if (group_free >= shown.free_bytes) return shown;
  shown.free_bytes = group_free;
  // What the others hold is not there for this program.
  if (shown.total_bytes - group_free > shown.used_bytes) shown.used_bytes = shown.total_bytes - group_free;
  return shown;
}

uint64_t shown_total(Process& process, Device& device) {
  refresh_limit(process, device);
  const uint64_t own = own_limit(process, device);
  const uint64_t group = group_limit(process, device);
  return own < group ? own : group;
}

}  // namespace gpucap
