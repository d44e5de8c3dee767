// Which kernels, functions and libraries have had their first uses in a context. The driver loads them at the first
// look-up, and takes local memory at the launch after it, which the second look-up lets see; later ones take nothing,
// so nobody need ask NVML. Some libraries look their kernels up before each launch (cuDNN: hundreds of times a training
// step). What is forgotten too early is looked at twice more. Any thread.
#pragma once

#include <cstdint>

#include "shim/driver/real_driver.h"

namespace gpucap::driver::first_uses {

// The key of a handle, or of a name within what a handle stands for.
template <typename Handle>
uint64_t key_of(Handle* handle) {
  return reinterpret_cast<uint64_t>(handle);
}
template <typename Handle>
uint64_t key_of(Handle* handle, const char* name) {
  uint64_t key = 0xcbf29ce484222325u;  // FNV-1a
  for (; name != nullptr && *name != '\0'; ++name) key = (key ^ static_cast<unsigned char>(*name)) * 0x100000001b3u;
  return key * 0x9e3779b97f4a7c15u + reinterpret_cast<uint64_t>(handle);
}

// Made before the call that may be a first use, in the current context. What one entry point has found is no first use
// for another: a kernel can be looked up without being loaded.
class Moment {
 public:
  explicit Moment(Api api);
  // There were a first and a second use before, and nothing has been unloaded up to now.
  [[nodiscard]] bool had_both(uint64_t key) const;
  void note(uint64_t key) const;  // now there was one more

 private:
  struct Name;
  [[nodiscard]] Name name_of(uint64_t key) const;
  uint64_t context_ = 0;  // 0: none is current, or something is being unloaded
  uint64_t epoch_ = 0;
  uint64_t api_ = 0;
};

// Lives as long as a call that may unload something or end a context. Handles may come back after it.
class Unloading {
 public:
  Unloading();
  ~Unloading();
  void nothing_went() { went_ = false; }
  Unloading(const Unloading&) = delete;
  Unloading& operator=(const Unloading&) = delete;

 private:
  bool went_ = true;
};

}  // namespace gpucap::driver::first_uses
