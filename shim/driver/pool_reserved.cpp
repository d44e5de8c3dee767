#include "shim/driver/pool_reserved.h"

#include "shim/driver/capture.h"
#include "shim/driver/reclaim.h"

namespace gpucap::driver::pool {

std::atomic<bool> any_frees{false};

Answer refresh_locked(Process& process, Pool& pool, By by, const ShrinkTime* time) {
  const UnnoticedByCaptures unnoticed;
  cuuint64_t reserved = 0;
  if (pool.destroyed ||
      real().cuMemPoolGetAttribute(pool.handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) != CUDA_SUCCESS)
    return Answer::kNone;
  Device* device = process.device(static_cast<int>(pool.ordinal));
  const int64_t change = pool.model.refresh(reserved);
  if (!pool.charged || device == nullptr) return Answer::kNone;
  // What grew without anybody's asking lies where memory was thought to be.
  if (change < 0 || (change > 0 && by != By::kGrowth)) pool.backed.forget();
  if (change < 0) {
    // Before the charge goes: see try_reserve_fresh.
    if (time == nullptr || !time->unseen()) mark_stale(*device);
  } else if (change == 0 && time != nullptr && time->undisturbed()) {
    pool.backed.carry_over(time->before(), time->after());
  }
  charge(*device, pool.kind, change);
  return change == 0 ? Answer::kSame : Answer::kChanged;
}

namespace {

void refresh(Process& process, Pool& pool, const ShrinkTime& time) {
  const std::lock_guard guard(pool.lock);
  refresh_locked(process, pool, By::kOther, &time);
}

bool has_memory(Pool& pool) {
  const std::lock_guard guard(pool.lock);
  return pool.model.reserved() != 0;
}

void trim_all(Process& process, Pool& pool) {
  const std::lock_guard guard(pool.lock);
  if (!pool.destroyed) real().cuMemPoolTrimTo(pool.handle, 0);
  refresh_locked(process, pool, By::kOther);
}

// After a synchronise; true if it may shrink at a later one.
bool refresh_freed(Process& process, Pool& pool, const ShrinkTime& time) {
  const std::lock_guard guard(pool.lock);
  Frees freed = Frees::kFreed, kept = Frees::kKept;
  pool.frees.compare_exchange_strong(freed, Frees::kKept);  // before the driver is asked: a free from now on marks it
  refresh_locked(process, pool, By::kOther, &time);
  const bool over = pool.destroyed || pool.model.reserved() == 0;
  return !over || !pool.frees.compare_exchange_strong(kept, Frees::kNone);
}

}  // namespace

// Let every pool of the device give back what it keeps. Blocks that are freed but whose stream has
// not got there yet are waited for, as the driver does before it says that memory is out.
void reclaim_pools(Process& process, Device& device) {
  const UnnoticedByCaptures unnoticed;
  const ShrinkTime time;
  const auto can_give = [&](const Pool& pool) {
    return pool.in_use.load(std::memory_order_relaxed) && pool.ordinal == device.ordinal && pool.charged &&
           !pool.destroyed;
  };
  bool any = false;
  for (uint32_t i = 0; i < high_water(); ++i) {
    Pool& pool = *by_index(i);
    if (!can_give(pool) || !has_memory(pool)) continue;
    begin_flight(device);
    trim_all(process, pool);
    end_flight(device);
    any = any || (pool.frees.load() == Frees::kFreed && has_memory(pool));
  }
  if (!any || capture_seen.load(std::memory_order_relaxed)) return;
  begin_flight(device);
  const CUresult waited = real().cuCtxSynchronize();
  for (uint32_t i = 0; waited == CUDA_SUCCESS && i < high_water(); ++i) {
    Pool& pool = *by_index(i);
    if (can_give(pool)) trim_all(process, pool);
  }
  end_flight(device);
}

void refresh_shrinkable(Process& process, const ShrinkTime& time) {
  if (!any_frees.load()) return;
  const auto has_frees = [](const Pool& pool) {
    return pool.in_use.load(std::memory_order_relaxed) && pool.frees.load() != Frees::kNone;
  };
  bool any = false;
  for (uint32_t i = 0; i < high_water(); ++i) {
    Pool& pool = *by_index(i);
    if (has_frees(pool) && refresh_freed(process, pool, time)) any = true;
  }
  if (any) return;
  any_frees.store(false);
  for (uint32_t i = 0; i < high_water(); ++i)  // who freed meanwhile has seen it set
    if (has_frees(*by_index(i))) any_frees.store(true);
}

bool refresh_all(Process& process, Device& device) {
  bool changed = false;
  for (uint32_t i = 0; i < high_water(); ++i) {
    Pool& pool = *by_index(i);
    if (!pool.in_use.load(std::memory_order_relaxed) || pool.ordinal != device.ordinal) continue;
    const std::lock_guard guard(pool.lock);  // whoever corrects its charge meanwhile is waited for
    if (pool.model.reserved() != 0) changed = refresh_locked(process, pool, By::kOther) == Answer::kChanged || changed;
  }
  return changed;
}

void trimmed(CUmemoryPool handle, const ShrinkTime& time) {
  Process* process = Process::get();
  Pool* pool = process == nullptr ? nullptr : find(*process, handle);
  if (pool != nullptr) refresh(*process, *pool, time);
}

}  // namespace gpucap::driver::pool
