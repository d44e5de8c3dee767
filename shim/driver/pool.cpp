#include "shim/driver/pool.h"

#include "shim/driver/capture.h"
#include "shim/driver/graph.h"
#include "shim/driver/pool_reserved.h"
#include "shim/driver/reclaim.h"

namespace gpucap::driver {

std::atomic<bool> capture_seen{false};

namespace pool {

namespace {

// Once any stream was captured, each request asks whether its own is capturing (some 20 ns).
__attribute__((cold)) bool is_capturing(CUstream stream, Default stream_zero) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = stream_zero == Default::kPerThread ? real().cuStreamIsCapturing_ptsz(stream, &status)
                                                             : real().cuStreamIsCapturing(stream, &status);
  if (result != CUDA_SUCCESS || status == CU_STREAM_CAPTURE_STATUS_NONE) return false;
  graph::see_memory_nodes();  // what is captured becomes an allocation node
  return true;
}

// Where the thread's latest stream leads: its device, and the pool that is current there.
struct Route {
  CUstream stream;
  uint64_t generation;
  Device* device;
  Pool* pool;
};
constinit thread_local Route route __attribute__((tls_model("initial-exec"))) = {};

__attribute__((cold)) bool find_route(Process& process, CUstream stream) {
  const uint64_t now = generation.load(std::memory_order_acquire);
  Device* device = device_of_stream(process, stream);
  if (device == nullptr) return false;
  // Without a current context the driver refuses the default streams; it answers that itself.
  process.activate(*device);
  // Where there are several devices, the default streams belong to that of the current context, whichever it is then.
  const bool stays = process.device_count() == 1 || is_of_one_device(stream);
  Pool* const pool = current_of(process, *device);
  route = {stream, stays && pool != nullptr ? now : 0, device, pool};
  return true;
}

// Where memory was before, and has not been taken back since the epoch in which the request began, a block is likely to
// have taken nothing. It is not certain: for a block that finds no gap, the driver moves free memory of the pool to
// other addresses, and lets it grow when the old ones are used again (measured).
[[gnu::always_inline]] inline bool lies_in_backed(const Pool& pool, uint64_t address, uint64_t bytes, Epoch begun_in) {
  const Epoch now = shrink_times.load();
  return now == begun_in && is_quiet(now) && pool.backed.holds(address, bytes, now);
}

struct Outliving {
  uint32_t index;
  uint64_t blocks;
};
void mark_outliving(core::Record& record, void* argument) {
  auto& outliving = *static_cast<Outliving*>(argument);
  if (record.space != core::Space::kPointer || record.kind != GPUCAP_KIND_POOL || record.link != outliving.index)
    return;
  record.link |= kOutlives;
  ++outliving.blocks;
}

}  // namespace

// A pool that was named, and the device that it is charged to.
bool Step::find_named(CUmemoryPool handle, CUstream stream) {
  pool_ = find(*process_, handle);
  if (pool_ == nullptr) {
    // A default pool that nobody has allocated from yet.
    for (int i = 0; i < process_->device_count() && pool_ == nullptr; ++i) {
      CUmemoryPool default_pool = nullptr;
      if (real().cuDeviceGetDefaultMemPool(&default_pool, i) == CUDA_SUCCESS && default_pool == handle)
        pool_ = add(*process_, handle, static_cast<uint32_t>(i), GPUCAP_KIND_POOL, true);
    }
  }
  if (pool_ != nullptr) device_ = process_->device(static_cast<int>(pool_->ordinal));
  if (pool_ == nullptr) {
    // Made where we did not see it: taken for a pool of the stream's device rather than let through.
    device_ = device_of_stream(*process_, stream);
    if (device_ != nullptr) process_->activate(*device_);
    if (device_ != nullptr) pool_ = add(*process_, handle, device_->ordinal, GPUCAP_KIND_POOL, true);
  }
  return pool_ != nullptr && device_ != nullptr;
}

[[gnu::hot]] Go Step::begin(Api api, uint64_t bytes, CUmemoryPool handle, CUstream stream, Default stream_zero) {
  process_ = Process::get();
  if (process_ == nullptr) [[unlikely]]
    return Go::kPass;
  if (capture_seen.load(std::memory_order_relaxed)) [[unlikely]] {
    if (is_capturing(stream, stream_zero)) return Go::kPass;
  }
  bool found = true;
  if (handle != nullptr) {
    found = find_named(handle, stream);
  } else {
    if (route.stream != stream || route.generation != generation.load(std::memory_order_acquire)) [[unlikely]] {
      if (!find_route(*process_, stream)) return Go::kPass;
    }
    device_ = route.device;
    pool_ = route.pool;
    found = pool_ != nullptr;
  }
  if (!found) [[unlikely]] {
    for (int i = 0; i < process_->device_count(); ++i) mark_stale(*process_->device(i));
    return Go::kPass;
  }
  api_ = api;
  bytes_ = bytes;
  process_->activate(*device_);
  promised_ = pool_->charged ? core::PoolModel::most_growth(bytes) : 0;
  if (!try_quickly(*process_, *device_, promised_, true)) [[unlikely]] {
    if (reserve_otherwise(*process_, *device_, {promised_, static_cast<uint16_t>(api_), reclaim}) == Verdict::kRefused)
      return Go::kRefuse;
  }
  begin_flight(*device_);
  epoch_ = shrink_times.load();
  return Go::kCharge;
}

// The driver says what the pool has reserved now.
void Step::charge_growth(uint64_t address) {
  const std::lock_guard guard(pool_->lock);
  // The charge of what grew comes in before the promise goes: whoever checks meanwhile sees too much, never too little.
  const bool known = refresh_locked(*process_, *pool_, By::kGrowth) != Answer::kNone;
  const Epoch now = shrink_times.load();
  if (!known || now != epoch_ || !is_quiet(now)) return;
  pool_->backed.add(address, bytes_, now);
  // More than there is: some of it has moved.
  if (pool_->backed.known_bytes() <= pool_->model.reserved()) return;
  pool_->backed.forget();
  pool_->backed.add(address, bytes_, now);
}

// A block of a pool that the driver was asked about while no other call was under way.
struct Asked {
  const Pool* pool;
  uint64_t address;
  uint64_t bytes;
  uint64_t calls;  // that had begun on the device by then
};
constinit thread_local Asked last_asked __attribute__((tls_model("initial-exec"))) = {};

// The promise cannot stand for a block that is likely to have taken nothing, so that must be certain.
void Step::make_certain(uint64_t address) {
  const uint64_t calls = flights_begun(*device_);
  Asked& last = last_asked;
  // The very block of before, and no call since in which the driver could have moved memory.
  if (last.pool == pool_ && last.address == address && last.bytes == bytes_ && last.calls + 1 == calls) {
    last.calls = calls;
    return;
  }
  const bool alone = all_ended(*device_, calls - 1);  // but for this one
  if (has_unasked(*device_)) {
    refresh_all(*process_, *device_);
    all_asked(*device_);
  } else {
    const std::lock_guard guard(pool_->lock);
    refresh_locked(*process_, *pool_, By::kGrowth);
  }
  last = alone ? Asked{pool_, address, bytes_, calls} : Asked{};
}

CUresult Step::failed(CUresult result) {
  if (pool_->charged) {  // the driver may have looked for memory everywhere first
    const std::lock_guard guard(pool_->lock);
    pool_->backed.forget();
    refresh_locked(*process_, *pool_, By::kOther);
  }
  settle(*device_, pool_->kind, promised_, 0);
  end_flight(*device_);
  tell_failure(*process_, *device_, api_, pool_->kind, bytes_, result);
  return result;
}

[[gnu::hot]] CUresult Step::end(CUresult result, uint64_t address) {
  if (result != CUDA_SUCCESS) [[unlikely]]
    return failed(result);
  if (!pool_->charged) [[unlikely]] {
    settle(*device_, pool_->kind, promised_, 0);
  } else if (!lies_in_backed(*pool_, address, bytes_, epoch_)) [[unlikely]] {
    charge_growth(address);
    settle(*device_, pool_->kind, promised_, 0);
  } else if (!keep_unasked(*device_, promised_)) {
    make_certain(address);
    keep_promise(*device_, pool_->kind, promised_);
  }
  core::Record record;
  record.space = core::Space::kPointer;
  record.key = address;
  record.bytes = bytes_;
  record.kind = GPUCAP_KIND_POOL;
  record.device = static_cast<uint8_t>(device_->ordinal);
  record.link = index_of(pool_);
  note(*process_, record);
  end_flight(*device_);
  count_live(*device_, 1);
  tell_charge(*process_, *device_, api_, GPUCAP_KIND_POOL, address, bytes_);
  return result;
}

void outliving_block_freed(Process& process, Pool* pool) {
  bool last = false;
  {
    const std::lock_guard guard(pool->lock);
    last = pool->model.free_outliving();
    if (last && pool->charged) {
      Device* device = process.device(static_cast<int>(pool->ordinal));
      mark_stale(*device);  // gone when the stream gets there
      charge(*device, pool->kind, pool->model.refresh(0));
    }
  }
  if (last) drop(process, pool);
}

void created(CUmemoryPool pool, const CUmemPoolProps& props) {
  Process* process = Process::get();
  if (process == nullptr) return;
  const bool on_device = props.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  const bool managed = static_cast<int>(props.allocType) == 2;  // CU_MEM_ALLOCATION_TYPE_MANAGED, since CUDA 13
  Device* device = process->device(on_device ? props.location.id : 0);
  if (device == nullptr) return;
  process->activate(*device);
  add(*process, pool, device->ordinal, managed ? GPUCAP_KIND_MANAGED : GPUCAP_KIND_POOL, on_device);
}

void imported(CUmemoryPool pool) {
  Process* process = Process::get();
  Device* device = process == nullptr ? nullptr : process->device(0);
  if (device == nullptr) return;
  process->activate(*device);
  add(*process, pool, device->ordinal, GPUCAP_KIND_POOL, false);
}

void begin_destroy(CUmemoryPool handle, Pool** known) {
  Process* process = Process::get();
  core::Record record;
  if (process == nullptr || !process->table().take(core::Space::kPool, reinterpret_cast<uint64_t>(handle), &record))
    return;
  *known = by_index(record.link);
  forget_current(-1);
  const std::lock_guard guard((*known)->lock);
  refresh_locked(*process, **known, By::kOther);
  (*known)->destroyed = true;  // from here on nobody asks the driver about it
}

void end_destroy(CUresult result, CUmemoryPool handle, Pool* pool) {
  Process* process = Process::get();
  if (process == nullptr || pool == nullptr) return;
  if (result != CUDA_SUCCESS) {
    {
      const std::lock_guard guard(pool->lock);
      pool->destroyed = false;
    }
    core::Record record;
    record.space = core::Space::kPool;
    record.key = reinterpret_cast<uint64_t>(handle);
    record.device = static_cast<uint8_t>(pool->ordinal);
    record.link = index_of(pool);
    note(*process, record);
    return;
  }
  forget_current(-1);  // again: somebody may have asked the driver while it was at it
  bool empty = false;
  {
    const std::lock_guard guard(pool->lock);
    // Blocks that are being freed at this moment are in no record, and free nothing here afterwards.
    Outliving outliving{index_of(pool), 0};
    process->table().edit_each(mark_outliving, &outliving);
    pool->model.outlived_by(outliving.blocks);
    empty = outliving.blocks == 0;
    Device* device = process->device(static_cast<int>(pool->ordinal));
    mark_stale(*device);
    if (empty && pool->charged) charge(*device, pool->kind, pool->model.refresh(0));
  }
  if (empty) drop(*process, pool);
}

void current_changed(CUdevice device) { forget_current(device); }

void capture_begun() { capture_seen.store(true, std::memory_order_relaxed); }

}  // namespace pool
}  // namespace gpucap::driver
