// A coarse clock that stands still, preloaded beside the library while instructions are counted: what gpucap does by
// the time that has passed (a look at NVML every 10 ms) then never happens, and counts are the same in every run.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern "C" int clock_gettime(clockid_t clock, timespec* now) {
  if (clock != CLOCK_MONOTONIC_COARSE) return static_cast<int>(syscall(SYS_clock_gettime, clock, now));
  now->tv_sec = 0;
  now->tv_nsec = 0;
  return 0;
}
