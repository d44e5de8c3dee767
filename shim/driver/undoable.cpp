#include "shim/driver/undoable.h"

#include "shim/driver/current.h"
#include "shim/driver/reclaim.h"

namespace gpucap::driver::undoable {
namespace {

bool is_over(Process& process, Device& device, Api api, uint64_t bytes) {
  return over_limit(process, device, static_cast<uint16_t>(api), bytes) != GPUCAP_REFUSED_BY_NOTHING;
}

// The driver keeps a stack for every thread that the card can hold at once (measured: exactly this).
uint64_t stack_bytes(const Device& device, uint64_t bytes_a_thread) {
  int processors = 0, threads = 0;
  const auto ordinal = static_cast<CUdevice>(device.ordinal);
  if (real().cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, ordinal) != CUDA_SUCCESS ||
      real().cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, ordinal) !=
          CUDA_SUCCESS)
    return 0;
  const uint64_t all = static_cast<uint64_t>(processors) * static_cast<uint64_t>(threads);
  return all != 0 && bytes_a_thread > UINT64_MAX / all ? UINT64_MAX : bytes_a_thread * all;
}

}  // namespace

Go LimitStep::begin(Api api, CUlimit limit, size_t value) {
  process_ = Process::get();
  if (process_ == nullptr) return Go::kPass;
  if (limit != CU_LIMIT_STACK_SIZE && limit != CU_LIMIT_MALLOC_HEAP_SIZE && limit != CU_LIMIT_PRINTF_FIFO_SIZE)
    return Go::kPass;
  device_ = current(*process_).device;
  if (device_ == nullptr || real().cuCtxGetLimit(&before_, limit) != CUDA_SUCCESS) return Go::kPass;
  api_ = api;
  limit_ = limit;
  mark_stale(*device_);  // also when it shrinks
  if (value <= before_) return Go::kPass;
  // Heap and fifo are taken by the first kernel that needs them, when nobody can refuse any more: so it is done here,
  // for the whole size, since nothing of an earlier and smaller one has been taken (afterwards the driver allows no
  // change).
  const uint64_t more = limit == CU_LIMIT_STACK_SIZE ? stack_bytes(*device_, value - before_) : value;
  promised_ = core::round_up(more, 2 * core::kMiB);
  if (reserve(*process_, *device_, {promised_, static_cast<uint16_t>(api_), reclaim}) == Verdict::kRefused)
    return Go::kRefuse;
  begin_flight(*device_);
  return Go::kCharge;
}

CUresult LimitStep::end(CUresult result) {
  end_flight(*device_);
  look(*process_, *device_, true);
  settle(*device_, GPUCAP_KIND_CONTEXT, promised_, 0);
  if (result != CUDA_SUCCESS || !is_over(*process_, *device_, api_, promised_)) return result;
  real().cuCtxSetLimit(limit_, before_);
  look(*process_, *device_, true);
  return refuse();
}

Go LoadStep::begin(Api api, uint64_t most) {
  process_ = Process::get();
  if (process_ == nullptr) return Go::kPass;
  Device* const device = current(*process_).device;
  if (device == nullptr || !device->active.load(std::memory_order_acquire)) return Go::kPass;
  device_ = device;
  api_ = api;
  look_if_stale(*process_, *device_);
  if (most != 0 && reserve(*process_, *device_, {most, static_cast<uint16_t>(api_), reclaim}) == Verdict::kRefused) {
    taken_ = most;
    return Go::kRefuse;
  }
  promised_ = most;
  driver_before_ = device_->ledger.driver();
  begin_flight(*device_);
  return Go::kCharge;
}

bool LoadStep::end(CUresult result) {
  end_flight(*device_);
  look(*process_, *device_, device_->ledger.limited() || device_->group != nullptr);
  if (promised_ != 0) settle(*device_, GPUCAP_KIND_CONTEXT, promised_, 0);
  if (result != CUDA_SUCCESS) return true;
  const int64_t taken = device_->ledger.driver() - driver_before_;
  if (taken <= 0) return true;  // if over, then for another reason: unloading would give nothing back
  if (!is_over(*process_, *device_, api_, static_cast<uint64_t>(taken))) return true;
  taken_ = static_cast<uint64_t>(taken);
  return false;
}

CUresult LoadStep::refuse() {
  look(*process_, *device_, true);
  return refuse_by_cap(*process_, *device_, api_, taken_);
}

}  // namespace gpucap::driver::undoable
