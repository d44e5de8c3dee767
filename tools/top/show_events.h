// `gpucap-top events`: prints the log, or follows it.
#pragma once

#include <set>
#include <string>

namespace gpucap::tools {

struct EventsOptions {
  std::string directory;
  std::set<int> pids;
  bool follow = false;
  bool json = false;
};

int show_events(const EventsOptions& options);

}  // namespace gpucap::tools
