// How pools grow, place and shrink. See pool.h; the exported functions are in pool_api.cpp and pool_attributes.cpp.
#include "tests/fake_cuda/pool.h"

#include <algorithm>

namespace fake {
namespace {

[[nodiscard]] bool take_chunks(Driver& driver, const Pool& pool, uint64_t bytes) {
  if (pool.memory == PoolMemory::kDevice) return driver.take(pool.device, bytes);
  if (pool.memory == PoolMemory::kManaged) driver.truth.take_managed(driver.device(pool.device)->physical, bytes);
  return true;
}

void give_chunks(Driver& driver, const Pool& pool, uint64_t bytes) {
  if (pool.memory == PoolMemory::kDevice) driver.give(pool.device, bytes);
  if (pool.memory == PoolMemory::kManaged) driver.truth.give_managed(driver.device(pool.device)->physical, bytes);
}

bool is_backed(const Pool& pool, uint64_t offset, uint64_t bytes) {
  for (uint64_t i = offset / kPoolChunkBytes; i * kPoolChunkBytes < offset + bytes; ++i) {
    if (i >= pool.chunks.size() || pool.chunks[i].fd < 0) return false;
  }
  return true;
}

// First fit among the gaps; with `backed_only`, only where nothing new is needed. UINT64_MAX if there is none.
uint64_t find_gap(const Pool& pool, uint64_t bytes, bool backed_only) {
  const auto fits = [&](uint64_t start, uint64_t end) -> uint64_t {
    while (start + bytes <= end) {
      if (!backed_only || is_backed(pool, start, bytes)) return start;
      start = (start / kPoolChunkBytes + 1) * kPoolChunkBytes;
      if (start / kPoolChunkBytes >= pool.chunks.size()) break;
    }
    return UINT64_MAX;
  };
  uint64_t end_of_last = pool.first_gap;
  for (auto next = pool.blocks.lower_bound(pool.first_gap); next != pool.blocks.end(); ++next) {
    const uint64_t found = fits(end_of_last, next->first);
    if (found != UINT64_MAX) return found;
    end_of_last = next->first + next->second;
  }
  return fits(end_of_last, pool.range_bytes);
}

bool is_free(const Pool& pool, uint64_t chunk) {
  const uint64_t start = chunk * kPoolChunkBytes;
  auto block = pool.blocks.lower_bound(start + kPoolChunkBytes);
  return block == pool.blocks.begin() || (--block)->first + block->second <= start;
}

void discard_chunk(Pool& pool, uint64_t index) {
  Backing::discard(pool.base + index * kPoolChunkBytes, kPoolChunkBytes);
  Backing::unmap_to_reserved(pool.base + index * kPoolChunkBytes, kPoolChunkBytes);
  pool.chunks[index] = {};
}

// A real pool moves its free memory to where a block needs it, before it grows (measured: docs/measurements.md).
void move_free_chunks(Pool& pool, uint64_t offset, uint64_t bytes, std::vector<uint64_t>& missing) {
  const uint64_t first = offset / kPoolChunkBytes, last = (offset + bytes - 1) / kPoolChunkBytes;
  for (uint64_t i = 0; i < pool.chunks.size() && !missing.empty(); ++i) {
    if (pool.chunks[i].fd < 0 || (i >= first && i <= last) || !is_free(pool, i)) continue;
    const uint64_t to = missing.back();
    if (to >= pool.chunks.size()) pool.chunks.resize(to + 1);
    const Extent extent = pool.chunks[i];
    if (!Backing::map_at(pool.base + to * kPoolChunkBytes, extent)) return;
    Backing::unmap_to_reserved(pool.base + i * kPoolChunkBytes, kPoolChunkBytes);
    pool.chunks[i] = {};
    pool.chunks[to] = extent;
    missing.pop_back();
  }
}

CUresult back(Driver& driver, Pool& pool, uint64_t offset, uint64_t bytes) {
  std::vector<uint64_t> missing;
  for (uint64_t i = offset / kPoolChunkBytes; i * kPoolChunkBytes < offset + bytes; ++i) {
    if (i >= pool.chunks.size() || pool.chunks[i].fd < 0) missing.push_back(i);
  }
  move_free_chunks(pool, offset, bytes, missing);
  const uint64_t more = missing.size() * kPoolChunkBytes;
  if (pool.max_bytes != 0 && pool.reserved_bytes + more > round_up(pool.max_bytes, kPoolChunkBytes)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (!take_chunks(driver, pool, more)) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!missing.empty() && missing.back() >= pool.chunks.size()) pool.chunks.resize(missing.back() + 1);
  for (const uint64_t index : missing) {
    Extent extent = driver.backing.create(kPoolChunkBytes);
    if (extent.fd < 0 || !Backing::map_at(pool.base + index * kPoolChunkBytes, extent)) {
      give_chunks(driver, pool, more);  // the chunks mapped so far are lost to the fake, not to the figures
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pool.chunks[index] = extent;
  }
  pool.reserved_bytes += more;
  pool.reserved_high_bytes = std::max(pool.reserved_high_bytes, pool.reserved_bytes);
  return CUDA_SUCCESS;
}

void forget_blocks(Driver& driver, Pool* pool) {
  for (const auto& [offset, bytes] : pool->blocks) driver.ranges.erase(pool->base + offset);
  pool->blocks.clear();
  pool->first_gap = 0;
  pool->used_bytes = 0;
}

}  // namespace

Pool* make_pool(Driver& driver, int device, PoolMemory memory, uint64_t max_bytes) {
  auto* const pool = new Pool;
  pool->device = device;
  pool->memory = memory;
  pool->max_bytes = max_bytes;
  driver.pools.insert(pool);
  return pool;
}

CUresult allocate_from_pool(Driver& driver, Pool* pool, uint64_t bytes, uint64_t* address) {
  if (bytes == 0) {
    *address = 0;
    return CUDA_SUCCESS;
  }
  if (bytes >= kAbsurdBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t rounded = round_up(bytes, kGranuleBytes);
  if (pool->memory == PoolMemory::kDevice && rounded > driver.memory_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  if (pool->base == 0) {
    pool->range_bytes = round_up(2 * driver.memory_bytes, kPoolChunkBytes);  // room for gaps
    pool->base = Backing::reserve(pool->range_bytes, kPoolChunkBytes, 0);
    if (pool->base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  uint64_t offset = find_gap(*pool, rounded, true);
  if (offset == UINT64_MAX) offset = find_gap(*pool, rounded, false);
  if (offset == UINT64_MAX) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = back(driver, *pool, offset, rounded);
  if (result != CUDA_SUCCESS) return result;
  pool->blocks[offset] = rounded;
  if (offset == pool->first_gap) pool->first_gap = offset + rounded;
  pool->used_bytes += rounded;
  pool->used_high_bytes = std::max(pool->used_high_bytes, pool->used_bytes);
  Range range;
  range.kind = RangeKind::kPool;
  range.bytes = bytes;
  range.device = pool->device;
  range.pool = pool;
  driver.ranges[pool->base + offset] = range;
  *address = pool->base + offset;
  return CUDA_SUCCESS;
}

CUresult free_to_pool(Driver& driver, uint64_t address) {
  Pool* const pool = driver.ranges.at(address).pool;
  driver.ranges.erase(address);
  const auto block = pool->blocks.find(address - pool->base);
  pool->used_bytes -= block->second;
  pool->first_gap = std::min(pool->first_gap, block->first);
  pool->blocks.erase(block);
  if (pool->destroyed && pool->blocks.empty()) destroy_pool(driver, pool);
  return CUDA_SUCCESS;
}

void trim_pool(Driver& driver, Pool* pool, uint64_t keep_bytes) {
  // From the end, as far as the memory that stays is still enough.
  for (size_t i = pool->chunks.size(); i-- > 0;) {
    if (pool->chunks[i].fd < 0) continue;
    if (pool->reserved_bytes < kPoolChunkBytes + keep_bytes) break;
    if (!is_free(*pool, i)) continue;
    discard_chunk(*pool, i);
    pool->reserved_bytes -= kPoolChunkBytes;
    give_chunks(driver, *pool, kPoolChunkBytes);
  }
  while (!pool->chunks.empty() && pool->chunks.back().fd < 0) pool->chunks.pop_back();
}

void trim_pools_at_synchronise(Driver& driver, int device) {
  for (Pool* const pool : driver.pools) {
    if (pool->device != device || pool->release_threshold >= pool->reserved_bytes) continue;
    trim_pool(driver, pool, pool->release_threshold);
  }
}

void destroy_pool(Driver& driver, Pool* pool) {
  forget_blocks(driver, pool);
  trim_pool(driver, pool, 0);
  if (pool->base != 0) Backing::release(pool->base, pool->range_bytes);
  driver.pools.erase(pool);
  delete pool;
}

void drop_pools(Driver& driver, int device) {
  const std::vector<Pool*> pools(driver.pools.begin(), driver.pools.end());
  Device& state = *driver.device(device);
  for (Pool* const pool : pools) {
    if (pool->device != device) continue;
    if (pool == state.default_pool || pool->memory != PoolMemory::kDevice) {
      forget_blocks(driver, pool);
      trim_pool(driver, pool, 0);
      pool->release_threshold = 0;
    } else {
      destroy_pool(driver, pool);
    }
  }
  state.current_pool = state.default_pool;
}

}  // namespace fake
