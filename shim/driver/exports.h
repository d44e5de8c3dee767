// The functions that the library exports in the driver's place: the rows of the hook table, as declarations.
#pragma once

#include "shim/driver/cuda.h"

#define GPUCAP_EXPORT __attribute__((visibility("default")))

extern "C" {
#define GPUCAP_HOOK(name, params, args, role, verb) GPUCAP_EXPORT CUresult CUDAAPI name params;
#include "shim/driver/hook_table.inc"
#undef GPUCAP_HOOK
}
