// What gpucap-top does without a subcommand: print once, print again and again, or hand over to the screen.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tools/common/scan.h"
#include "tools/top/options.h"

namespace gpucap::tools {

int show_table(const TopOptions& options);

// One line for where there is nothing to show. Pure.
std::string empty_table_advice(const Places& places);

}  // namespace gpucap::tools
