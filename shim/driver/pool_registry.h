// Every pool that this process may allocate from, by handle. Pools of other processes and of host memory are known too,
// and are not charged. Fixed memory; a slot is reused when its pool is gone and its last block is freed.
#pragma once

#include <mutex>

#include "shim/core/backed_ranges.h"
#include "shim/core/pool_model.h"
#include "shim/driver/pool.h"

namespace gpucap::driver::pool {

// Whether a synchronise may let a pool shrink. kFreed: a block was freed since the last one; kKept: none was, but what
// is there may still go, for other streams have not got to their frees, or its threshold falls.
enum class Frees : uint8_t { kNone, kKept, kFreed };

struct Pool {
  std::mutex lock;  // of model, destroyed and changes of backed; held across the driver's answer to "how much is
                    // reserved", so that answers stay in order
  CUmemoryPool handle = nullptr;
  uint32_t ordinal = 0;
  gpucap_kind kind = GPUCAP_KIND_POOL;  // managed pools are charged as managed memory
  bool charged = true;                  // false: host memory, or exported by another process, which pays for it
  bool destroyed = false;               // by the program, or about to be; lives until its last block is freed
  std::atomic<bool> in_use{false};
  std::atomic<Frees> frees{Frees::kNone};
  core::BackedRanges backed;  // where a block is not likely to have made the pool grow
  core::PoolModel model;
};

inline constexpr uint32_t kMostPools = 1024;

Pool* find(Process& process, CUmemoryPool handle);
extern Pool pools[kMostPools];
inline Pool* by_index(uint32_t index) { return index < kMostPools ? &pools[index] : nullptr; }
inline uint32_t index_of(const Pool* pool) { return static_cast<uint32_t>(pool - pools); }
// A block of a pool was freed (its record is out of the table).
inline constexpr uint32_t kOutlives = uint32_t{1} << 31;  // in Record::link: the pool was destroyed before
extern std::atomic<bool> any_frees;                       // in some pool
void outliving_block_freed(Process& process, Pool* pool);
inline void block_freed(Process& process, const core::Record& record) {
  Pool* pool = by_index(record.link & ~kOutlives);
  if (pool == nullptr) return;
  if (pool->charged) {
    // Read before they are written: all threads share these words, and nearly always they are set already.
    if (pool->frees.load() != Frees::kFreed) pool->frees.store(Frees::kFreed);
    if (!any_frees.load()) any_frees.store(true);
  }
  if ((record.link & kOutlives) != 0) outliving_block_freed(process, pool);
}

// nullptr when there are too many; such a pool's memory is found by looks at NVML alone.
Pool* add(Process& process, CUmemoryPool handle, uint32_t ordinal, gpucap_kind kind, bool charged);
void drop(Process& process, Pool* pool);
// The pool that cuMemAllocAsync uses on the device; asks the driver when it may have changed.
Pool* current_of(Process& process, Device& device);
void forget_current(CUdevice device);
// Slots ever used: indices below this may be in use.
uint32_t high_water();

}  // namespace gpucap::driver::pool
