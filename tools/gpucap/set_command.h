// `gpucap set`: asks a running process, or a group, to take over another limit. Changes nothing unless all of it can be
// done.
#pragma once

#include <cstdint>
#include <string>

namespace gpucap::tools {

struct SetOptions {
  int pid = 0;        // as this process would address it; 0: a group is meant
  std::string group;  // empty: a process is meant
  std::string limit;
  std::string gpu;
  std::string directory;
};

// The exit status: 0, 1 with one line on stderr, or 125 where the options make no sense.
int set_command(const SetOptions& options);

}  // namespace gpucap::tools
