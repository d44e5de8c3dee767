// How gpucap says no: one line on stderr, and the exit status that goes with it.
#pragma once

#include <string>

#include "tools/gpucap/command.h"

namespace gpucap::tools {

inline constexpr int kExitFailed = 1;  // of set and check, which stand in for no command

// Cleans the line of what a terminal must not see, and returns the status.
int refuse(const Refusal& refusal);

}  // namespace gpucap::tools
