// The devices as this process sees them, for process/.
#pragma once

#include "shim/process/process.h"

namespace gpucap::driver {
int enumerate(Device* devices, int most);
}  // namespace gpucap::driver
