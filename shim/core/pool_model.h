// What a stream-ordered pool may take for a request. A pool grows in steps of 32 MiB and places a block in the first
// gap that holds it (measured: docs/measurements.md); which gaps there are is the driver's secret, and changes under
// concurrent frees, trims and synchronises. So each request is promised for as if it found none, and the charge is what
// the driver says is reserved. Blocks are not counted while the pool lives; those that outlive it are. Not locked: the
// owner holds the pool's lock.
#pragma once

#include <cstdint>

#include "shim/core/size.h"

namespace gpucap::core {

class PoolModel {
 public:
  static constexpr uint64_t kStep = uint64_t{32} << 20;
  static constexpr uint64_t kGranule = 512;

  // The most by which a pool can grow for a block of this size.
  static constexpr uint64_t most_growth(uint64_t bytes) { return round_up(bytes, kStep); }

  // What the driver says it has reserved now; returns the change against what was charged before.
  int64_t refresh(uint64_t reserved_bytes) {
    const int64_t change = static_cast<int64_t>(reserved_bytes) - static_cast<int64_t>(reserved_);
    reserved_ = reserved_bytes;
    return change;
  }

  // The pool was destroyed while so many of its blocks live.
  void outlived_by(uint64_t blocks) { outliving_ = blocks; }
  // One of those was freed; true if it was the last.
  bool free_outliving() { return outliving_ != 0 && --outliving_ == 0; }

  [[nodiscard]] uint64_t reserved() const { return reserved_; }

 private:
  uint64_t reserved_ = 0;  // what is charged: the driver's figure at the last look
  uint64_t outliving_ = 0;
};

}  // namespace gpucap::core
