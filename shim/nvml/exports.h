// The functions that the library exports in NVML's place: the rows of the table, as declarations.
#pragma once

#include "shim/nvml/nvml_api.h"

#define GPUCAP_EXPORT __attribute__((visibility("default")))

extern "C" {
#define GPUCAP_NVML(name, params, args, verb) GPUCAP_EXPORT gpucap::nvml::Return name params;
using gpucap::nvml::DeviceHandle;
using gpucap::nvml::Memory;
using gpucap::nvml::MemoryV2;
#include "shim/nvml/nvml_table.inc"
#undef GPUCAP_NVML
}
