#include "shim/driver/pool_registry.h"

#include "shim/core/spin_lock.h"
#include "shim/driver/capture.h"
#include "shim/driver/current.h"

namespace gpucap::driver::pool {

Pool pools[kMostPools];

namespace {

std::atomic<uint32_t> used_slots{0};
core::SpinLock registry_lock;
// By ordinal: the current pool, or nullptr when the driver has to be asked.
std::atomic<Pool*> current_pools[kMaxDevices];

}  // namespace

uint32_t high_water() { return used_slots.load(std::memory_order_acquire); }

Pool* find(Process& process, CUmemoryPool handle) {
  core::Record record;
  if (!process.table().find(core::Space::kPool, reinterpret_cast<uint64_t>(handle), &record)) return nullptr;
  return by_index(record.link);
}

Pool* add(Process& process, CUmemoryPool handle, uint32_t ordinal, gpucap_kind kind, bool charged) {
  Pool* pool = nullptr;
  {
    const core::SpinGuard guard(registry_lock);
    for (uint32_t i = 0; i < kMostPools && pool == nullptr; ++i) {
      if (pools[i].in_use.load(std::memory_order_relaxed)) continue;
      pool = &pools[i];
      pool->in_use.store(true, std::memory_order_relaxed);
      if (i >= used_slots.load(std::memory_order_relaxed)) used_slots.store(i + 1, std::memory_order_release);
    }
  }
  if (pool == nullptr) return nullptr;
  {
    const std::lock_guard guard(pool->lock);
    pool->handle = handle;
    pool->ordinal = ordinal;
    pool->kind = kind;
    pool->charged = charged;
    pool->destroyed = false;
    pool->model = core::PoolModel();
    pool->backed.forget();
    pool->frees.store(Frees::kNone);
  }
  core::Record record;
  record.space = core::Space::kPool;
  record.key = reinterpret_cast<uint64_t>(handle);
  record.device = static_cast<uint8_t>(ordinal);
  record.link = index_of(pool);
  if (!process.table().insert(record)) {
    pool->in_use.store(false, std::memory_order_relaxed);
    return nullptr;
  }
  return pool;
}

void drop(Process& process, Pool* pool) {
  static_cast<void>(process);
  const core::SpinGuard guard(registry_lock);
  pool->in_use.store(false, std::memory_order_relaxed);
}

Pool* current_of(Process& process, Device& device) {
  std::atomic<Pool*>& slot = current_pools[device.ordinal];
  Pool* pool = slot.load(std::memory_order_acquire);
  if (pool != nullptr) return pool;
  const UnnoticedByCaptures unnoticed;
  const uint64_t before = generation.load();
  CUmemoryPool handle = nullptr;
  if (real().cuDeviceGetMemPool(&handle, static_cast<CUdevice>(device.ordinal)) != CUDA_SUCCESS) return nullptr;
  static std::mutex adding;  // two threads must not add the same default pool twice
  const std::lock_guard guard(adding);
  pool = find(process, handle);
  if (pool == nullptr) pool = add(process, handle, device.ordinal, GPUCAP_KIND_POOL, true);
  slot.store(pool);
  if (generation.load() != before) slot.store(nullptr);  // it may have changed since the driver was asked
  return pool;
}

void forget_current(CUdevice device) {
  for (int i = 0; i < kMaxDevices; ++i)
    if (device < 0 || i == device) current_pools[i].store(nullptr);
  forget_what_threads_remember();  // after: see current_of()
}

}  // namespace gpucap::driver::pool
