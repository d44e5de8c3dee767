// Time as the fast path needs it: both read the kernel's shared page, no system call. The processor's own counter is no
// way out: where it was measured, in a virtual machine, one reading cost 27 ns of the call around it.
#pragma once

#include <time.h>

#include <cstdint>

namespace gpucap {

inline uint64_t monotonic_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

// As of the kernel's last tick: 1 to 10 milliseconds coarse, a few nanoseconds cheap.
inline uint64_t coarse_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace gpucap
