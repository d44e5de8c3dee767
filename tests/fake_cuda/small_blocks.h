// Requests of up to 1 MiB share 2 MiB blocks: 512-byte granules, first fit, mixed sizes. Decides places only: its user
// brings each new block's memory and takes it away when the block is empty. Not thread-safe.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>

#include "tests/fake_cuda/sizes.h"

namespace fake {

class SmallBlocks {
 public:
  // A place in one of the present blocks, or 0: then add_block() and ask again.
  uint64_t place(uint64_t bytes);
  void add_block(uint64_t address) { blocks_[address]; }
  // Frees a place of that size. True if its block is empty now; the block is forgotten, its address is *block.
  bool remove(uint64_t address, uint64_t bytes, uint64_t* block);
  // Forgets all blocks, visiting the address of each.
  template <class Visit>
  void clear(Visit visit) {
    for (const auto& entry : blocks_) visit(entry.first);
    blocks_.clear();
  }

 private:
  static constexpr uint64_t kGranules = kBlockBytes / kGranuleBytes;
  struct Block {
    std::bitset<kGranules> used;
    uint64_t free = kGranules;
    uint64_t first_free = 0;  // no granule before it is free
  };
  std::map<uint64_t, Block> blocks_;
};

}  // namespace fake
