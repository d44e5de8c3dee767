#include "shim/core/block_map.h"

namespace gpucap::core {
namespace {
constexpr uint64_t kPage = 4096;
constexpr uint64_t kFirstCapacity = 8;
}  // namespace

uint64_t BlockMap::slot_of(uint64_t number) const {
  uint64_t slot = home(number, capacity_);
  while (blocks_[slot].number != 0 && blocks_[slot].number != number) slot = (slot + 1) & (capacity_ - 1);
  return slot;
}

bool BlockMap::grow(const PageSource& pages) {
  const uint64_t capacity = capacity_ == 0 ? kFirstCapacity : capacity_ * 2;
  const uint64_t bytes = (capacity * sizeof(Block) + kPage - 1) / kPage * kPage;
  auto* fresh = static_cast<Block*>(pages.take(bytes));
  if (fresh == nullptr) return false;
  Block* old = blocks_;
  const uint64_t old_capacity = capacity_, old_bytes = mapped_bytes_;
  blocks_ = fresh;
  capacity_ = capacity;
  mapped_bytes_ = bytes;
  for (uint64_t i = 0; i < old_capacity; ++i)
    if (old[i].number != 0) blocks_[slot_of(old[i].number)] = old[i];
  if (old != nullptr) pages.give_back(old, old_bytes);
  return true;
}

// Sets or clears a run of granules; returns how many changed.
uint64_t BlockMap::mark_run(Block& block, uint64_t first, uint64_t count, bool in_use) {
  uint64_t changed = 0;
  for (uint64_t bit = first; bit < first + count;) {
    const uint64_t word = bit / 64, offset = bit % 64;
    const uint64_t run = count - (bit - first) < 64 - offset ? count - (bit - first) : 64 - offset;
    const uint64_t mask = (run == 64 ? ~uint64_t{0} : (uint64_t{1} << run) - 1) << offset;
    const uint64_t before = block.used[word];
    block.used[word] = in_use ? before | mask : before & ~mask;
    const uint64_t different = before ^ block.used[word];
    changed += different == mask ? run : static_cast<uint64_t>(__builtin_popcountll(different));
    bit += run;
  }
  return changed;
}

// The same; most requests are one granule, and counting bits in general takes a call on plain x86-64.
inline uint64_t BlockMap::mark(Block& block, uint64_t first, uint64_t count, bool in_use) {
  if (count != 1) return mark_run(block, first, count, in_use);
  const uint64_t bit = uint64_t{1} << (first % 64);
  uint64_t& word = block.used[first / 64];
  const bool was_in_use = (word & bit) != 0;
  word = in_use ? word | bit : word & ~bit;
  return was_in_use != in_use ? 1 : 0;
}

bool BlockMap::add(uint64_t address, uint64_t bytes, const PageSource& pages) {
  const uint64_t number = address / kBlockBytes;
  const uint64_t first = address % kBlockBytes / kGranule;
  uint64_t granules = (bytes + kGranule - 1) / kGranule;
  const uint64_t room = kBlockBytes / kGranule - first;
  if (granules > room) granules = room;
  const SpinGuard guard(lock_);
  if ((count_ + 1) * 4 > capacity_ * 3 && !grow(pages) && count_ + 1 >= capacity_) return true;
  Block& block = blocks_[slot_of(number)];
  const bool is_new = block.number == 0;
  if (is_new) {
    block = Block{};
    block.number = number;
    ++count_;
  }
  block.live += mark(block, first, granules, true);
  return is_new;
}

bool BlockMap::remove(uint64_t address, uint64_t bytes) {
  const uint64_t number = address / kBlockBytes;
  const uint64_t first = address % kBlockBytes / kGranule;
  uint64_t granules = (bytes + kGranule - 1) / kGranule;
  const uint64_t room = kBlockBytes / kGranule - first;
  if (granules > room) granules = room;
  const SpinGuard guard(lock_);
  if (capacity_ == 0) return true;
  const uint64_t slot = slot_of(number);
  if (blocks_[slot].number == 0) return true;
  blocks_[slot].live -= mark(blocks_[slot], first, granules, false);
  if (blocks_[slot].live != 0) return false;
  erase(slot);
  return true;
}

void BlockMap::erase(uint64_t slot) {
  const uint64_t mask = capacity_ - 1;
  uint64_t hole = slot;
  for (uint64_t next = (hole + 1) & mask; blocks_[next].number != 0; next = (next + 1) & mask) {
    const uint64_t from = home(blocks_[next].number, capacity_);
    if (((next - from) & mask) >= ((next - hole) & mask)) {
      blocks_[hole] = blocks_[next];
      hole = next;
    }
  }
  blocks_[hole].number = 0;
  --count_;
}

bool BlockMap::has_gap(uint64_t bytes) const {
  const uint64_t wanted = (bytes + kGranule - 1) / kGranule;
  const SpinGuard guard(lock_);
  for (uint64_t i = 0; i < capacity_; ++i) {
    const Block& block = blocks_[i];
    if (block.number == 0 || kBlockBytes / kGranule - block.live < wanted) continue;
    uint64_t run = 0;
    for (uint64_t bit = 0; bit < kBlockBytes / kGranule; ++bit) {
      run = (block.used[bit / 64] >> (bit % 64) & 1) != 0 ? 0 : run + 1;
      if (run >= wanted) return true;
    }
  }
  return false;
}

uint64_t BlockMap::blocks() const {
  const SpinGuard guard(lock_);
  return count_;
}

}  // namespace gpucap::core
