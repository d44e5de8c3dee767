// How the driver packs small linear allocations: requests up to 1 MiB are cut, in granules of 512 bytes, from blocks of
// 2 MiB that all sizes share, and a block goes back to the card the moment it is empty (measured:
// docs/measurements.md). This map mirrors that from the addresses that the driver returned, so a block is charged
// exactly while it exists. One a device.
#pragma once

#include <cstdint>

#include "shim/core/pages.h"
#include "shim/core/spin_lock.h"

namespace gpucap::core {

class BlockMap {
 public:
  static constexpr uint64_t kBlockBytes = uint64_t{2} << 20;
  static constexpr uint64_t kGranule = 512;
  static constexpr uint64_t kLargestSmall = uint64_t{1} << 20;

  // True if this allocation opened a new block: 2 MiB more are held. Also true, to be on the safe side, when the map
  // has no memory left to note the block; removing then answers true as well, so that the charge comes back.
  bool add(uint64_t address, uint64_t bytes, const PageSource& pages);
  // True if its block is now empty: 2 MiB go back when the driver's free succeeds.
  bool remove(uint64_t address, uint64_t bytes);
  // Whether some block has a gap that would hold `bytes`, so that the driver need not open another. For the slow path.
  [[nodiscard]] bool has_gap(uint64_t bytes) const;

  [[nodiscard]] uint64_t blocks() const;

 private:
  static constexpr int kWords = static_cast<int>(kBlockBytes / kGranule / 64);
  struct Block {
    uint64_t number;  // address / 2 MiB; 0 is an empty slot (no device pointer lies there)
    uint64_t live;    // granules in use
    uint64_t used[kWords];
  };

  static uint64_t home(uint64_t number, uint64_t capacity) {
    return (number * 0x9E3779B97F4A7C15u >> 20) & (capacity - 1);
  }
  [[nodiscard]] uint64_t slot_of(uint64_t number) const;
  bool grow(const PageSource& pages);
  void erase(uint64_t slot);
  static uint64_t mark_run(Block& block, uint64_t first, uint64_t count, bool in_use);
  static uint64_t mark(Block& block, uint64_t first, uint64_t count, bool in_use);

  mutable SpinLock lock_;
  Block* blocks_ = nullptr;
  uint64_t capacity_ = 0;
  uint64_t count_ = 0;
  uint64_t mapped_bytes_ = 0;
};

}  // namespace gpucap::core
