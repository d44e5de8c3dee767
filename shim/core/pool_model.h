// What a stream-ordered pool will take before it takes it. A pool is one address range that grows at its end in steps
// of 32 MiB, and places a block in the first gap that holds it (measured: docs/measurements.md). The model knows the
// reserved bytes that the driver reports and the highest end of any block it has placed, so it can promise from above:
// a request that fits behind that end cannot grow the pool; any other grows it by at most its own size rounded up to a
// step. Not locked: the owner holds the pool's lock.
#pragma once

#include <cstdint>

#include "shim/core/size.h"

namespace gpucap::core {

class PoolModel {
 public:
  static constexpr uint64_t kStep = uint64_t{32} << 20;
  static constexpr uint64_t kGranule = 512;

  // The most by which the pool can grow for `bytes`. Claims the room until placed() or failed(), so that two requests
  // in the driver at once are not promised the same tail.
  uint64_t expect(uint64_t bytes) {
    const uint64_t need = round_up(bytes, kGranule);
    const uint64_t growth = regular_ && highest_end_ + claimed_ + need <= reserved_ ? 0 : round_up(bytes, kStep);
    claimed_ += need;
    return growth;
  }

  // A request that was told "no growth" is in the driver: until it is back, the room that it was promised stays
  // charged, even if the pool shrinks meanwhile (another thread synchronises or trims) and has to grow again.
  void rely_on_room() { ++relied_on_; }
  void rely_no_more() { --relied_on_; }

  void failed(uint64_t bytes) { claimed_ -= round_up(bytes, kGranule); }

  // The driver put the block at `address`. True if the caller must ask the driver for the reserved bytes, because the
  // pool may have grown.
  [[nodiscard]] bool placed(uint64_t address, uint64_t bytes) {
    const uint64_t need = round_up(bytes, kGranule);
    claimed_ -= need;
    ++live_;
    if (base_ == 0 || address < base_) {
      regular_ = base_ == 0;  // a block below the first one: not the range that we know
      base_ = address;
    }
    const uint64_t end = address - base_ + need;
    if (end > highest_end_) highest_end_ = end;
    return !regular_ || end > reserved_;
  }

  void freed() {
    if (live_ != 0) --live_;
    shrinkable_ = true;
  }

  // A block was placed in a capturing stream, or is otherwise not in the pool after all.
  void forget() {
    if (live_ != 0) --live_;
  }

  // What the driver says it has reserved now; returns the change against what was charged before. A shrink is put off
  // while somebody relies on the room.
  int64_t refresh(uint64_t reserved_bytes) {
    if (reserved_bytes < reserved_ && relied_on_ != 0) {
      shrinkable_ = true;
      return 0;
    }
    // A shrink leaves holes in the range, which the driver fills again before it uses the tail.
    if (reserved_bytes < reserved_ && (live_ != 0 || claimed_ != 0)) regular_ = false;
    const int64_t change = static_cast<int64_t>(reserved_bytes) - static_cast<int64_t>(reserved_);
    reserved_ = reserved_bytes;
    if (live_ == 0 && claimed_ == 0) {
      highest_end_ = 0;
      if (reserved_ == 0) {
        base_ = 0;
        regular_ = true;
      }
    }
    return change;
  }

  // Where the last block really ends, found by looking through all that live: lets the model promise less.
  void set_highest_end(uint64_t address_end) {
    if (regular_ && claimed_ == 0 && address_end >= base_ && address_end - base_ <= highest_end_)
      highest_end_ = address_end - base_;
  }

  // Whether a free since the last look may have let the pool shrink; asking clears it.
  bool take_shrinkable() {
    const bool was = shrinkable_;
    shrinkable_ = false;
    return was;
  }
  [[nodiscard]] bool shrinkable() const { return shrinkable_; }

  [[nodiscard]] uint64_t reserved() const { return reserved_; }
  [[nodiscard]] uint64_t live() const { return live_; }

 private:
  uint64_t base_ = 0;
  uint64_t highest_end_ = 0;  // relative to base_, of any block placed since the pool was last empty
  uint64_t claimed_ = 0;
  uint64_t reserved_ = 0;  // what is charged: the driver's figure at the last look
  uint64_t live_ = 0;
  uint32_t relied_on_ = 0;
  bool regular_ = true;
  bool shrinkable_ = false;
};

}  // namespace gpucap::core
