// gpucap-top on a terminal: looks, draws, takes keys, until told to stop. The only loop of the screen; everything that
// it decides is decided by the pure parts.
#pragma once

#include "tools/top/options.h"

namespace gpucap::tools {

int show_screen(const TopOptions& options);

}  // namespace gpucap::tools
