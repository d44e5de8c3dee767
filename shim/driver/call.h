// A hooked call on its way: the number of its entry point and the real function with the program's arguments. The verbs
// take it, do their book-keeping around it, and call it exactly once, or not at all if they refuse.
#pragma once

#include "shim/driver/real_driver.h"

namespace gpucap::driver {

template <typename Function>
class Call {
 public:
  constexpr Call(Api api, Function function) : api_(api), function_(function) {}
  CUresult operator()() const { return function_(); }
  [[nodiscard]] Api api() const { return api_; }

 private:
  Api api_;
  Function function_;
};

}  // namespace gpucap::driver
