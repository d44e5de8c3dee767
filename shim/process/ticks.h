// The processor's own counter, for how long a driver call took: a few nanoseconds a reading, where asking the kernel's
// clock would cost more than the rest of what we do for a call. Turned into nanoseconds by what telemetry measured
// between two looks.
#pragma once

#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace gpucap {

inline uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return 0;  // latencies are then not measured
#endif
}

// How long the thread's latest timed driver call took.
extern thread_local uint64_t call_ticks __attribute__((tls_model("initial-exec")));

}  // namespace gpucap
