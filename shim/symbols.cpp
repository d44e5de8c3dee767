// What dlsym and dlvsym answer, called by dlsym.S for every look-up in the process: quick and silent for names that are
// not ours. A name of ours is looked up for real; the answer is changed only where it is the real driver's function
// (ours goes in its place), or our own export, which must not make a library look present that is not there.
#include <dlfcn.h>

#include <cstdint>
#include <cstring>

#include "shim/driver/real_driver.h"
#include "shim/loader/real_dl.h"
#include "shim/runtime/runtime.h"

namespace gpucap {

struct Route {
  uint64_t ready;
  void* value;
};

namespace {

bool may_be_ours(const char* name) { return name != nullptr && name[0] == 'c' && name[1] == 'u'; }

Route hand_on(void* real) { return {0, real}; }
Route answer(void* value) { return {1, value}; }

// `found` is what the real look-up gave for a driver name.
Route swapped(void* found) {
  void* ours = driver::hook_for_real_address(found);
  return answer(ours == nullptr ? found : ours);
}

bool is_our_hook(const void* address, const char* name) {
  const driver::Api api = driver::find_by_name(name);
  return api != driver::Api::kNone && address == driver::hook_address(api);
}

// What the program would find without us in a search that begins with the whole program.
Route without_us(const char* name) {
  void* next = loader::real_dlsym()(RTLD_NEXT, name);  // we are the caller: what comes after us
  return next == nullptr ? answer(nullptr) : swapped(next);
}

template <typename LookUp>
Route route(void* handle, const char* name, void* caller, void* real, LookUp look_up) {
  if (!may_be_ours(name)) return hand_on(real);
  const bool of_driver = driver::find_by_name(name) != driver::Api::kNone;
  if (handle == RTLD_NEXT) {
    if (!of_driver) return hand_on(real);
    void* next = loader::next_definition(caller, name);
    // A library that comes before us asks for the next definition: that is ours, and the jump finds it.
    if (next == nullptr || driver::hook_for_real_address(next) == nullptr) return hand_on(real);
    return swapped(next);
  }
  if (!of_driver && strncmp(name, "cuda", 4) != 0) return hand_on(real);
  void* found = look_up();
  if (found == nullptr) return hand_on(real);  // again, so that dlerror() tells the program what it would have
  if (is_our_hook(found, name) || runtime::is_ours(found)) {
    if (handle != RTLD_DEFAULT && handle == loader::handle_if_loaded("libgpucap.so")) return answer(found);
    return without_us(name);
  }
  return of_driver ? swapped(found) : answer(found);
}

}  // namespace

extern "C" {

__attribute__((visibility("hidden"), used)) Route gpucap_route_dlsym(void* handle, const char* name, void* caller) {
  void* real = reinterpret_cast<void*>(loader::real_dlsym());
  return route(handle, name, caller, real, [&] { return loader::real_dlsym()(handle, name); });
}

__attribute__((visibility("hidden"), used)) Route gpucap_route_dlvsym(void* handle, const char* name,
                                                                      const char* version, void* caller) {
  void* real = reinterpret_cast<void*>(loader::real_dlvsym());
  return route(handle, name, caller, real, [&] { return loader::real_dlvsym()(handle, name, version); });
}

}  // extern "C"
}  // namespace gpucap
