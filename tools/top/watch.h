// What gpucap-top does without a subcommand: print once, print again and again, or draw on a terminal until told to
// stop.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tools/top/screen.h"
#include "tools/top/table.h"

namespace gpucap::tools {

enum ExitCode { kExitOk = 0, kExitNothing = 1, kExitUsage = 2, kExitNoDirectory = 3, kExitCannotWrite = 4 };

struct TopOptions {
  std::string directory;  // --dir
  std::set<int> pids;
  bool once = false;
  bool json = false;
  bool all = false;
  double interval_seconds = 0;  // 0: not given
};

int show_table(const TopOptions& options);

// A line on top, then the table or what to do when it is empty; fits the screen. Pure.
std::vector<std::string> compose_screen(const Scan& scan, const Places& places, ScreenSize size);
std::string empty_table_advice(const Places& places);

}  // namespace gpucap::tools
