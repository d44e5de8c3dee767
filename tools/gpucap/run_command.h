// `gpucap run`: judges the options, sets the environment, waits for room, starts the command and sums up.
#pragma once

#include <string>
#include <vector>

namespace gpucap::tools {

struct RunOptions {
  std::string limit, group, group_limit, on_limit;
  std::string wait, gpu, wait_timeout;
  std::string log, log_file, directory, summary_file;
  bool limit_given = false;
  bool quiet = false;
  bool json = false;
  std::vector<std::string> command;
};

// The exit status: the command's, or 125, 126, 127 of our own. Does not return if the command died by a signal.
int run_command(const RunOptions& options);

}  // namespace gpucap::tools
