// See small_blocks.h.
#include "tests/fake_cuda/small_blocks.h"

#include <algorithm>

namespace fake {

uint64_t SmallBlocks::place(uint64_t bytes) {
  const uint64_t wanted = (bytes + kGranuleBytes - 1) / kGranuleBytes;
  for (auto& [address, block] : blocks_) {
    if (block.free < wanted) continue;
    uint64_t run = 0;
    for (uint64_t granule = block.first_free; granule < kGranules; ++granule) {
      run = block.used[granule] ? 0 : run + 1;
      if (run < wanted) continue;
      const uint64_t first = granule + 1 - wanted;
      for (uint64_t i = first; i <= granule; ++i) block.used.set(i);
      block.free -= wanted;
      if (first == block.first_free) block.first_free = first + wanted;
      return address + first * kGranuleBytes;
    }
  }
  return 0;
}

bool SmallBlocks::remove(uint64_t address, uint64_t bytes, uint64_t* block_address) {
  const uint64_t count = (bytes + kGranuleBytes - 1) / kGranuleBytes;
  *block_address = address / kBlockBytes * kBlockBytes;
  const auto found = blocks_.find(*block_address);
  if (found == blocks_.end()) return false;
  Block& block = found->second;
  const uint64_t first = (address - *block_address) / kGranuleBytes;
  for (uint64_t i = first; i < first + count; ++i) block.used.reset(i);
  block.free += count;
  block.first_free = std::min(block.first_free, first);
  if (block.free != kGranules) return false;
  blocks_.erase(found);
  return true;
}

}  // namespace fake
