// How this process comes to share a budget (GPUCAP_GROUP): see process.h. A budget that cannot be joined cannot be kept
// either, so nothing is given out then.
#include <cstdio>
#include <cstring>

#include "shim/process/log.h"
#include "shim/process/process.h"
#include "shim/process/quota_parts.h"
#include "wire/steps.h"

namespace gpucap {

void Process::join_group(Device& device) {
  if (config_.group[0] == '\0' || config_.refuse_everything) return;
  wire::GroupError error = wire::GroupError::kNone;
  int error_number = 0;
  if (!group_.joined())
    error = group_.join(config_.group_directory, config_.group_directory_is_default, config_.group, &error_number);
  uint64_t given = config_.group_limits.for_device(device.ordinal, device.uuid_text, device.physical_bytes);
  if (device.group_policy_limit < given) given = device.group_policy_limit;
  uint64_t standing = core::kNoLimit;
  if (error == wire::GroupError::kNone) error = group_.add_device(device.uuid, given, &device.group_number, &standing);
  if (error != wire::GroupError::kNone) {
    char reason[640];
    snprintf(reason, sizeof(reason),
             "group '%s' in %s cannot be joined: %s%s%s. Until that is set right, no GPU context is given out",
             config_.group, config_.group_directory, wire::to_text(error), error_number == 0 ? "" : ": ",
             error_number == 0 ? "" : strerror(error_number));
    close_down(reason);
    return;
  }
  if (given != core::kNoLimit && given != standing) {
    const auto text = [](uint64_t bytes) { return core::BytesText(static_cast<int64_t>(bytes)); };
    log_line(LogLevel::kWarn, "group '%s' has a limit of %s on GPU %u already: it stands, and %s is not used",
             config_.group, text(standing).text, device.ordinal, text(given).text);
  }
  GPUCAP_STEP("membership:before-use");
  device.group = &group_;
  publish_group(device);
}

void Process::close_down(const char* reason) {
  if (config_.refuse_everything) return;
  config_.refuse_everything = true;
  // The reason of later refusals: see context::CreateStep::refuse.
  snprintf(config_.complaints[0], sizeof(config_.complaints[0]), "%s", reason);
  if (config_.complaint_count == 0) config_.complaint_count = 1;
  log_line(LogLevel::kError, "%s", reason);
  for (int i = 0; i < device_count_; ++i) {
    devices_[i].ledger.set_limit(0);
    devices_[i].policy_limit = 0;  // also not by `gpucap set`
  }
}

}  // namespace gpucap
