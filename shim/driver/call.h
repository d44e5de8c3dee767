// A hooked call on its way: the number of its entry point and the real function with the program's arguments. The verbs
// take it, do their book-keeping around it, and call it exactly once, or not at all if they refuse.
#pragma once

#include "shim/driver/real_driver.h"
#include "shim/process/ticks.h"

namespace gpucap::driver {

template <typename Function>
class Call {
 public:
  constexpr Call(Api api, Function function) : api_(api), function_(function) {}
  CUresult operator()() const { return function_(); }
  // The same for calls that are told of as events, with their latency.
  CUresult timed() const {
    const uint64_t began = ticks();
    const CUresult result = function_();
    call_ticks = ticks() - began;
    return result;
  }
  [[nodiscard]] Api api() const { return api_; }

 private:
  Api api_;
  Function function_;
};

}  // namespace gpucap::driver
