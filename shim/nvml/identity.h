// Which device a handle of NVML means: its UUID, asked once a handle and kept, in fixed memory and without a lock.
// Handles come by index, UUID, PCI id or as MIG instances, and NVML gives the same one for as long as the process
// lives.
#pragma once

#include <cstdint>

#include "shim/nvml/nvml_api.h"

namespace gpucap::nvml {

struct Identity {
  char text[kMaxUuidBytes] = {};  // as NVML gives it: "GPU-...", "MIG-..."
  uint8_t uuid[16] = {};
  bool has_uuid = false;  // old drivers name MIG instances in another way
};

// nullptr where NVML does not say. The answer stays for good, except in `scratch`, which serves when all places are
// taken.
const Identity* identity_of(DeviceHandle device, Identity* scratch);

}  // namespace gpucap::nvml
