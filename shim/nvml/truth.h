// What NVML says this process holds on a device: the figure that nvidia-smi shows, and the one that the cap is about.
#pragma once

#include "shim/process/process.h"

namespace gpucap::nvml {

// Functions for Parts::truth. NVML is loaded and initialised at the first open() (some 10 ms), never shut down.
TruthReader truth_reader();

}  // namespace gpucap::nvml
