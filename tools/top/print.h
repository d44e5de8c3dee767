// gpucap-top without a screen: a table, JSON, separated values or sums on stdout, once or again and again. Called by
// main(); draws nothing and takes no keys.
#pragma once

#include "tools/top/options.h"

namespace gpucap::tools {

int print_scans(const TopOptions& options);

// Whether there is a screen to draw on.
bool on_a_terminal();

}  // namespace gpucap::tools
