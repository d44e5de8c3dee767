// Somebody else's preloaded library: wraps malloc and cuMemAlloc_v2, and finds what it wraps with RTLD_NEXT, twice,
// from the same thread. Says at the end how often it was called, and on the spot when a wrapper is entered from within
// itself.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "tests/e2e/symbols_look.h"

namespace {

std::atomic<unsigned> mallocs{0}, driver_allocs{0};
thread_local int depth = 0;

__attribute__((constructor)) void early() {
  // Before this library's users run: what comes next for a name that only a driver has?
  dprintf(1, "interposer_early=%s\n", look::describe(dlsym(RTLD_NEXT, "cuMemFree_v2")).c_str());
}
__attribute__((destructor)) void late() {
  dprintf(1, "wrapped_mallocs=%s\nwrapped_driver_allocs=%u\n", mallocs.load() > 0 ? "some" : "none",
          driver_allocs.load());
}

[[noreturn]] void die(const char* why) {
  dprintf(1, "interposer_trouble=%s\n", why);
  _exit(99);
}

template <typename Function>
Function next_of(const char* name) {
  void* const first = dlsym(RTLD_NEXT, name);
  void* const second = dlsym(RTLD_NEXT, name);
  if (first == nullptr || first != second) die("two look-ups of one name differ, or found nothing");
  Function function;
  __builtin_memcpy(&function, &first, sizeof(function));
  return function;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void* malloc(size_t bytes) {
  static const auto next = next_of<void* (*)(size_t)>("malloc");
  mallocs.fetch_add(1, std::memory_order_relaxed);
  return next(bytes);
}

extern "C" __attribute__((visibility("default"))) int cuMemAlloc_v2(unsigned long long* pointer, size_t bytes) {
  if (depth != 0) die("cuMemAlloc_v2 came back to us");
  ++depth;
  const auto next = next_of<int (*)(unsigned long long*, size_t)>("cuMemAlloc_v2");
  const int result = next(pointer, bytes);
  --depth;
  driver_allocs.fetch_add(1, std::memory_order_relaxed);
  return result;
}
