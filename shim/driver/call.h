// A hooked call on its way: the number of its entry point and the real function with the program's arguments. The verbs
// take it, do their book-keeping around it, and call it exactly once, or not at all if they refuse.
#pragma once

#include "shim/driver/real_driver.h"
#include "shim/process/clock.h"
#include "shim/process/thread_words.h"

namespace gpucap::driver {

// Which calls of a kind have their time in the driver measured. Where the driver answers within a microsecond, reading
// the clock twice for each would cost a tenth of it.
enum class Timing : uint8_t { kEach, kOneInSixteen };

template <typename Function>
class Call {
 public:
  constexpr Call(Api api, Function function) : api_(api), function_(function) {}
  CUresult operator()() const { return function_(); }
  // The same for calls that are told of as events; leaves behind when it ended and how long it took (ThreadWords).
  CUresult timed(Timing timing) const {
    ThreadWords& thread = this_thread();
    if (timing == Timing::kOneInSixteen && --thread.calls_until_timed != 0) [[likely]] {
      thread.call_ended_ns = thread.call_took_ns = 0;  // an earlier call may have been told of by nobody
      return function_();
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
  Api api_;
  Function function_;
};

}  // namespace gpucap::driver
