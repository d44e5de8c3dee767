// cuMemFree and cuMemFreeAsync: whatever the pointer, the driver is called and answers. What we noted for it is taken
// out before, so that nobody can be given the same address in between, and put back if the driver refuses.
#pragma once

#include "shim/driver/call.h"
#include "shim/driver/step.h"

namespace gpucap::driver::pointers {

class Step {
 public:
  void begin(Api api, uint64_t address, bool on_stream);
  void end(CUresult result);
  [[nodiscard]] Timing timing() const;

 private:
  Process* process_ = nullptr;
  Device* device_ = nullptr;  // set if the pointer is in our books
  Api api_ = Api::kNone;
  bool on_stream_ = false;
  bool block_emptied_ = false;
  core::Record record_;

  [[nodiscard]] gpucap_kind kind() const { return static_cast<gpucap_kind>(record_.kind); }
};

template <typename Function>
CUresult release(const Call<Function>& call, uint64_t address) {
  Step step;
  step.begin(call.api(), address, false);
  const CUresult result = call.timed(step.timing());
  step.end(result);
  return result;
}

// The memory is free once the stream gets there. Stream-ordered blocks go back to their pool; a cuMemAlloc pointer is
// allowed too.
template <typename Function>
CUresult release_on_stream(const Call<Function>& call, uint64_t address) {
  Step step;
  step.begin(call.api(), address, true);
  const CUresult result = call.timed(step.timing());
  step.end(result);
  return result;
}

}  // namespace gpucap::driver::pointers
