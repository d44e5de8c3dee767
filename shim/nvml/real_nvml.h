// NVML's own functions, found in libnvidia-ml.so.1 when it is in the process; never brings it in. Called by our
// stand-ins and by symbol look-ups, from any thread. The truth reader has its own way, since it may load NVML.
#pragma once

#include <cstdint>

#include "shim/nvml/nvml_api.h"

namespace gpucap::nvml {

enum class Function : uint8_t {
#define GPUCAP_NVML(name, params, args, verb) k_##name,
#include "shim/nvml/nvml_table.inc"
#undef GPUCAP_NVML
  kHooked,  // how many have stand-ins; what follows is only called
  k_nvmlDeviceGetUUID = kHooked,
  k_nvmlDeviceGetCount_v2,
  k_nvmlDeviceGetHandleByIndex_v2,
  kCount
};

// Null where NVML is not in the process, or lacks the function.
void* real_address(Function function);

// The real function, or a stand-in that answers NVML_ERROR_FUNCTION_NOT_FOUND.
template <typename Signature>
Signature* real(Function function);

// Whether we stand in for this name.
[[nodiscard]] bool has(const char* name);
// Our stand-in for an address of the real NVML's, or for a name that the loaded NVML has; nullptr otherwise.
void* hook_for_real_address(const void* address);
void* hook_for_name(const char* name);

namespace detail {
template <typename Signature>
struct Missing;
template <typename... Arguments>
struct Missing<Return(Arguments...)> {
  static Return call(Arguments...) { return kFunctionNotFound; }
};
}  // namespace detail

template <typename Signature>
Signature* real(Function function) {
  void* address = real_address(function);
  return address == nullptr ? &detail::Missing<Signature>::call : reinterpret_cast<Signature*>(address);
}

}  // namespace gpucap::nvml
