// What the environment asks of this process, read once, when the program first uses CUDA. Never changes the
// environment. In set-user-id programs the variables that name files are ignored (secure_getenv).
#pragma once

#include "shim/core/group_name.h"
#include "shim/core/limits.h"
#include "shim/core/on_limit.h"
#include "shim/core/policy.h"

namespace gpucap {

enum class LogLevel : int { kOff = 0, kError, kWarn, kInfo, kDebug };

struct Config {
  bool disabled = false;  // GPUCAP_DISABLE=1
  // A limit that could not be read: every context creation is refused, and nothing can be allocated.
  bool refuse_everything = false;
  core::LimitRules limits;
  core::Policy policy;             // what the policy file asks of this user
  core::GroupPolicy group_policy;  // and of the group, where the process chose it itself
  core::OnLimitValue on_limit;
  bool observes_policy = false;              // the policy file itself only observes its limits
  char group[core::kMaxGroupName + 1] = {};  // the budget to share; empty: none
  core::LimitRules group_limits;
  LogLevel log_level = LogLevel::kWarn;
  char log_file[256] = {};  // empty: stderr; %p already replaced
  char directory[256] = {};
  bool directory_is_default = true;
  // Where the group's file lies: the same, unless the policy file put the process into the group.
  char group_directory[256] = {};
  bool group_directory_is_default = true;
  char run_id[32] = {};

  // The limit of a device, by the environment and the policy file; the lowest wins.
  [[nodiscard]] uint64_t limit_of(uint32_t ordinal, std::string_view uuid_text, uint64_t physical_bytes) const;

  // What was wrong, ready to log once the log is set up; empty if nothing was.
  static constexpr int kMaxComplaints = 4;
  char complaints[kMaxComplaints][384] = {};
  int complaint_count = 0;
};

void read_config(Config* config);

// Adds a line to tell. What does not fit any more is left out.
__attribute__((format(printf, 2, 3))) void complain(Config* config, const char* format, ...);

}  // namespace gpucap
