// The bodies that programs call instead of NVML's. No logic here: each hands the real call to the verb of its row.
#include "shim/nvml/exports.h"

#include "shim/nvml/memory_info.h"
#include "shim/nvml/real_nvml.h"

namespace gpucap::nvml {

#define GPUCAP_NVML(name, params, args, verb)                                                   \
  extern "C" GPUCAP_EXPORT Return name params {                                                 \
    const auto call = [&]() -> Return { return real<Return params>(Function::k_##name) args; }; \
    return verb;                                                                                \
  }                                                                                             \
  __asm__(".symver " #name ", " #name "@GPUCAP");  // see shim/exports.map
#include "shim/nvml/nvml_table.inc"
#undef GPUCAP_NVML

}  // namespace gpucap::nvml
