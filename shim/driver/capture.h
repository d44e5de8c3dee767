// Stream captures. While any thread captures in the global mode, the driver takes calls such as cuMemPoolGetAttribute
// or cuMemPoolTrimTo as a sign of an error and ends the capture (measured), unless the calling thread says that it
// knows what it does. gpucap's own calls of that kind say so. A program that never captures pays one load and one
// branch.
#pragma once

#include "shim/driver/real_driver.h"

namespace gpucap::driver {

// Set at the first capture of the process.
extern std::atomic<bool> capture_seen;

// Around calls of our own that a capture must not notice. Nests; restores what the thread had.
class UnnoticedByCaptures {
 public:
  UnnoticedByCaptures() {
    if (capture_seen.load(std::memory_order_relaxed))
      exchanged_ = real().cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS;
  }
  ~UnnoticedByCaptures() {
    if (exchanged_) real().cuThreadExchangeStreamCaptureMode(&mode_);
  }
  UnnoticedByCaptures(const UnnoticedByCaptures&) = delete;
  UnnoticedByCaptures& operator=(const UnnoticedByCaptures&) = delete;

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool exchanged_ = false;
};

}  // namespace gpucap::driver
