// Stream-ordered pools: one contiguous address range that grows at its end in 32 MiB chunks; 512-byte granules, first
// fit. The fake's streams have always finished, so a freed block is reusable at once by all of them. Under the lock.
#pragma once

#include <map>
#include <vector>

#include "tests/fake_cuda/driver.h"

namespace fake {

enum class PoolMemory { kDevice, kHost, kManaged };

struct Pool {
  int device = 0;
  PoolMemory memory = PoolMemory::kDevice;
  uint64_t max_bytes = 0;  // 0: as much as the card has
  bool shareable = false;
  bool destroyed = false;  // waits for its last block
  uint64_t base = 0;       // of its address range, reserved at first use
  uint64_t range_bytes = 0;
  std::vector<Extent> chunks;           // fd < 0: not there
  std::map<uint64_t, uint64_t> blocks;  // offset -> bytes, rounded to granules
  uint64_t first_gap = 0;               // no offset before it is free
  uint64_t reserved_bytes = 0;
  uint64_t reserved_high_bytes = 0;
  uint64_t used_bytes = 0;
  uint64_t used_high_bytes = 0;
  uint64_t release_threshold = 0;
  int reuse[3] = {1, 1, 1};  // event dependencies, opportunistic, internal dependencies
};

Pool* make_pool(Driver& driver, int device, PoolMemory memory, uint64_t max_bytes);
CUresult allocate_from_pool(Driver& driver, Pool* pool, uint64_t bytes, uint64_t* address);
CUresult free_to_pool(Driver& driver, uint64_t address);
// Gives whole free chunks back while more than that stays reserved.
void trim_pool(Driver& driver, Pool* pool, uint64_t keep_bytes);
// At every synchronise on that device.
void trim_pools_at_synchronise(Driver& driver, int device);
// Frees everything in them, when the primary context ends; the device's default pool stays usable, user pools go.
void drop_pools(Driver& driver, int device);
void destroy_pool(Driver& driver, Pool* pool);

inline Pool* as_pool(CUmemoryPool handle) { return reinterpret_cast<Pool*>(handle); }
inline CUmemoryPool as_handle(Pool* pool) { return reinterpret_cast<CUmemoryPool>(pool); }

}  // namespace fake
