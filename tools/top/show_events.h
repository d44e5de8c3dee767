// `gpucap-top events`: prints the log, follows it, or counts what it says.
#pragma once

#include <set>
#include <string>

#include "tools/top/event_filter.h"

namespace gpucap::tools {

struct EventsOptions {
  std::string directory;
  std::set<int> pids;
  EventFilter filter;
  bool follow = false;
  bool count = false;
  bool json = false;
  bool csv = false;
};

int show_events(const EventsOptions& options);

}  // namespace gpucap::tools
