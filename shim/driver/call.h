// A hooked call on its way: the number of its entry point and the real function with the program's arguments. The verbs
// take it, do their book-keeping around it, and call it exactly once, or not at all if they refuse.
#pragma once

#include "shim/driver/real_driver.h"
#include "shim/process/clock.h"
#include "shim/process/thread_words.h"

namespace gpucap::driver {

// Which calls of a kind have their time in the driver measured. Where the driver answers within a microsecond, reading
// the clock twice for each would cost a tenth of it; where it takes some 30, a quarter of a per cent.
enum class Timing : uint8_t {
  kEach,
  kOneInSixteen,
  kOneInSixteenAndSlow,  // and each that the coarse clock shows to be slow
};
// Two ticks at least of the slowest kernel: what takes longer than 30 ms is always seen.
inline constexpr uint64_t kSlowCall_ns = 20'000'000;

template <typename Function>
class Call {
 public:
  constexpr Call(Api api, Function function) : api_(api), function_(function) {}
  CUresult operator()() const { return function_(); }
  // The same for calls that are told of as events; leaves behind when it ended and how long it took (ThreadWords).
  CUresult timed(Timing timing) const {
    ThreadWords& thread = this_thread();
    if (timing != Timing::kEach && --thread.calls_until_timed != 0) [[likely]] {
      thread.call_ended_ns = thread.call_took_ns = 0;  // an earlier call may have been told of by nobody
      return timing == Timing::kOneInSixteen ? function_() : timed_if_slow(thread);
    }
    thread.calls_until_timed = 16;
    const uint64_t began_ns = monotonic_ns();
    const CUresult result = function_();
    thread.call_ended_ns = monotonic_ns();
    thread.call_took_ns = thread.call_ended_ns - began_ns;
    return result;
  }
  [[nodiscard]] Api api() const { return api_; }

 private:
  CUresult timed_if_slow(ThreadWords& thread) const {
    const uint64_t began_ns = coarse_ns();
    const CUresult result = function_();
    const uint64_t ended_ns = thread.coarse_ns = coarse_ns();
    if (ended_ns - began_ns >= kSlowCall_ns) [[unlikely]] {
      thread.call_ended_ns = ended_ns;
      thread.call_took_ns = ended_ns - began_ns;
    }
    return result;
  }

  Api api_;
  Function function_;
};

}  // namespace gpucap::driver
