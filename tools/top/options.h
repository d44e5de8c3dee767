// What gpucap-top was asked for, and how it ends. Filled by main(), read by everything that prints or draws.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tools/common/scan.h"

namespace gpucap::tools {

enum ExitCode { kExitOk = 0, kExitNothing = 1, kExitUsage = 2, kExitNoDirectory = 3, kExitCannotWrite = 4 };

struct TopOptions {
  std::string directory;  // --dir
  std::set<int> pids;
  bool once = false;
  bool ascii = false;  // the screen draws with ASCII alone
  bool json = false;
  bool all = false;                          // the dead too, in what is for scripts
  uint64_t keep_seconds = kKeepDeadSeconds;  // how long the dead are listed
  double interval_seconds = 0;               // 0: not given
  bool csv = false;
  std::vector<std::string> query;  // field names; empty: none asked for
  bool header = true;
  bool units = false;
  std::string by;  // user, group, command; empty: processes
};

}  // namespace gpucap::tools
