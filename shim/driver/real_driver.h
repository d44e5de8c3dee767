// The driver's own functions, found in libcuda.so.1 once, on first need, and kept for good. A function that this driver
// does not have is a stand-in that answers CUDA_ERROR_NOT_FOUND; no version is ever replaced by another.
#pragma once

#include <atomic>
#include <cstdint>

#include "shim/driver/cuda.h"

namespace gpucap::driver {

// Numbers of the hooked entry points, in the order of the table; 0 is "none". They are the API numbers of the event
// log.
enum class Api : uint16_t {
  kNone = 0,
#define GPUCAP_HOOK(name, params, args, role, verb) k_##name,
#include "shim/driver/hook_table.inc"
#undef GPUCAP_HOOK
  kCount
};

enum class Role : uint8_t { kCharge, kRelease, kContext, kAnswer, kLook, kSync, kState, kResolve };

struct RealDriver {
#define GPUCAP_HOOK(name, params, args, role, verb) CUresult(CUDAAPI* name) params;
#include "shim/driver/hook_table.inc"
#undef GPUCAP_HOOK
#define GPUCAP_CALL(name, params) CUresult(CUDAAPI* name) params;
#include "shim/driver/driver_calls.inc"
#undef GPUCAP_CALL
};

namespace detail {
extern std::atomic<bool> real_ready;
extern RealDriver real_functions;
void load_real_driver();
}  // namespace detail

inline const RealDriver& real() {
  if (!detail::real_ready.load(std::memory_order_acquire)) detail::load_real_driver();
  return detail::real_functions;
}

// Whether this driver exports the function (and it is not our stand-in).
[[nodiscard]] bool has(Api api);

// Name as exported; "none" for kNone. `all_names()` has Api::kCount entries.
const char* const* all_names();
inline const char* name_of(Api api) { return all_names()[static_cast<int>(api)]; }
Api find_by_name(const char* name);

// Our stand-in for an address of the real driver's, or nullptr if we have none for it. Does not load the driver:
// answers nullptr until libcuda is in the process.
void* hook_for_real_address(const void* address);
// Our stand-in for an exported function that the loaded driver has; nullptr without one, or until libcuda is loaded.
void* hook_for_name(const char* name);

}  // namespace gpucap::driver
