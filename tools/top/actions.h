// What the screen does to others: a signal, another limit. Each has been confirmed before. Says how it went in a line
// for the person at the keys.
#pragma once

#include <cstdint>
#include <string>

#include "tools/top/collector.h"
#include "tools/top/view_model.h"

namespace gpucap::tools {

struct Outcome {
  bool done = false;
  std::string text;
};

Outcome send_signal(const ProcessRow& row, const LiveSegment& live, int signal);
Outcome set_limit(const ProcessRow& row, const LiveSegment& live, const Directories& directories, uint64_t limit_bytes);

}  // namespace gpucap::tools
