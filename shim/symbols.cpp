// What dlsym and dlvsym answer, called by dlsym.S for every look-up in the process: quick and silent for names that are
// not ours. A name of the driver's is looked up for real, as its caller would find it; the answer is changed only where
// it is the real driver's function: ours goes in its place. dlsym itself never finds our exports (see exports.map), so
// they make no library look present that is not there.
#include <dlfcn.h>

#include <cstdint>

#include "shim/driver/real_driver.h"
#include "shim/loader/real_dl.h"
#include "shim/nvml/real_nvml.h"
#include "shim/runtime/runtime.h"

namespace gpucap {

struct Route {
  uint64_t ready;
  void* value;
};

namespace {

bool may_be_ours(const char* name) { return name != nullptr && name[0] == 'c' && name[1] == 'u'; }
bool may_be_nvml(const char* name) { return name != nullptr && name[0] == 'n' && name[1] == 'v'; }

// A name that the driver or NVML exports and that we have a function for.
bool is_hooked(const char* name) {
  if (may_be_nvml(name)) return nvml::has(name);
  return may_be_ours(name) && driver::find_by_name(name) != driver::Api::kNone;
}

// Ours for what a real look-up found for such a name; nullptr if that is not the driver's or NVML's own.
void* hook_for_found(const char* name, const void* found) {
  return may_be_nvml(name) ? nvml::hook_for_real_address(found) : driver::hook_for_real_address(found);
}
void* hook_for_name(const char* name) {
  return may_be_nvml(name) ? nvml::hook_for_name(name) : driver::hook_for_name(name);
}

Route hand_on(void* real) { return {0, real}; }
Route answer(void* value) { return {1, value}; }

// `found` is what the real look-up gave for a hooked name.
Route swapped(const char* name, void* found) {
  void* ours = hook_for_found(name, found);
  return answer(ours == nullptr ? found : ours);
}

// A real look-up sees us as the caller. Where the program's own place matters (RTLD_NEXT, and RTLD_DEFAULT from a
// library with dependencies of its own), only the jump is exact; but its answer cannot be changed, so what it will find
// has to be known before. In doubt, a driver that is loaded counts as found: a hook too many still calls the driver.
Route route_next(void* real, const char* name, void* caller) {
  void* found = nullptr;
  if (loader::was_there_at_start(caller)) {
    void* after_us = loader::real_dlsym()(RTLD_NEXT, name);
    if (after_us == nullptr) return hand_on(real);
    found = loader::next_at_start(caller, name);
    if (found == nullptr && !loader::was_there_at_start(after_us)) found = after_us;
  } else {
    found = loader::find_from(caller, name);
    if (loader::object_of(found) == loader::object_of(caller)) found = nullptr;  // wraps it, and wants what comes after
  }
  void* ours = found == nullptr ? hook_for_name(name) : hook_for_found(name, found);
  return ours == nullptr ? hand_on(real) : answer(ours);
}

Route route(void* real, void* handle, const char* name, void* caller) {
  if (!is_hooked(name)) return hand_on(real);
  if (handle == RTLD_NEXT) return route_next(real, name, caller);
  void* found = loader::real_dlsym()(handle, name);
  if (found == nullptr && handle == RTLD_DEFAULT) found = loader::find_from(caller, name);
  // Nothing: again by the jump, so that dlerror() tells the program what it would have told it.
  return found == nullptr ? hand_on(real) : swapped(name, found);
}

// With a version, the exports of ours that have the runtimes' versions can be found, and must not be; those of the
// driver have a version that nobody asks for, and the driver itself has none, nor has NVML.
Route route_versioned(void* real, void* handle, const char* name, const char* version) {
  if (!may_be_ours(name) || !runtime::has(name)) return hand_on(real);
  void* found = loader::real_dlvsym()(handle, name, version);
  // Ours, or a search that begins at a place that may be before us: what comes after us counts.
  if (runtime::is_ours(found) || handle == RTLD_NEXT) return answer(loader::real_dlvsym()(RTLD_NEXT, name, version));
  return hand_on(real);
}

}  // namespace

extern "C" {

__attribute__((visibility("hidden"), used)) Route gpucap_route_dlsym(void* handle, const char* name, void* caller) {
  return route(reinterpret_cast<void*>(loader::real_dlsym()), handle, name, caller);
}

__attribute__((visibility("hidden"), used)) Route gpucap_route_dlvsym(void* handle, const char* name,
                                                                      const char* version) {
  return route_versioned(reinterpret_cast<void*>(loader::real_dlvsym()), handle, name, version);
}

}  // extern "C"
}  // namespace gpucap
