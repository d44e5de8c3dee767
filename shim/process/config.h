// What the environment asks of this process, read once, when the program first uses CUDA. Never changes the
// environment. In set-user-id programs the variables that name files are ignored (secure_getenv).
#pragma once

#include "shim/core/limits.h"

namespace gpucap {

enum class LogLevel : int { kOff = 0, kError, kWarn, kInfo, kDebug };

struct Config {
  bool disabled = false;  // GPUCAP_DISABLE=1
  // A limit that could not be read: every context creation is refused, and nothing can be allocated.
  bool refuse_everything = false;
  core::LimitRules limits;
  LogLevel log_level = LogLevel::kWarn;
  char log_file[256] = {};  // empty: stderr; %p already replaced
  char directory[256] = {};
  bool directory_is_default = true;
  char run_id[32] = {};

  // What was wrong, ready to log once the log is set up; empty if nothing was.
  static constexpr int kMaxComplaints = 4;
  char complaints[kMaxComplaints][384] = {};
  int complaint_count = 0;
};

void read_config(Config* config);

}  // namespace gpucap
