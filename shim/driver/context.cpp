#include "shim/driver/context.h"

#include <cstdio>

#include "shim/driver/current.h"
#include "shim/driver/reclaim.h"
#include "shim/process/limits.h"
#include "shim/process/log.h"

namespace gpucap::driver::context {
namespace {

// Primary contexts by device, to know whose memory went when one is released to zero or reset.
CUcontext primary_contexts[kMaxDevices];

bool belongs_to(const core::Record& record, void* argument) {
  return record.context != 0 && record.context == *static_cast<const uint8_t*>(argument);
}

void give_back_taken(const core::Record& record, void*) { give_back(*Process::get(), record); }

// What NVML says of a process that certainly holds a context; nothing means that it does not see us (WSL, some
// containers).
bool has_figure(Process& process, Device& device) {
  return !device.truth_missing.load() && process.truth().read(device) > 0;
}

}  // namespace

Go CreateStep::begin(Api api, CUdevice device, uint64_t most) {
  process_ = Process::get();
  if (process_ == nullptr) return Go::kPass;
  device_ = process_->device(device);
  if (device_ == nullptr) return Go::kPass;  // no such device: the driver's answer
  api_ = api;
  if (process_->config().refuse_everything) return Go::kRefuse;
  process_->activate(*device_);
  if (process_->config().refuse_everything) return Go::kRefuse;  // its group could not be joined
  refresh_limit(*process_, *device_);
  expected_ = most != 0;
  promised_ = expected_ ? most : device_->gauge->context_bytes;
  if (promised_ == 0 && device_->group != nullptr) promised_ = device_->group->context_bytes(device_->group_number);
  // With a cap of nothing there is no need to make a context to know that it does not fit.
  if (device_->ledger.limit() == 0 && !observes(*process_)) return Go::kRefuse;
  if (promised_ != 0 &&
      reserve(*process_, *device_, {promised_, static_cast<uint16_t>(api_), reclaim}) == Verdict::kRefused) {
    return Go::kRefuse;
  }
  look(*process_, *device_, true);
  driver_before_ = device_->ledger.driver();
  card_before_ = process_->truth().read_whole_device(*device_);
  begin_flight(*device_);
  return Go::kCharge;
}

bool CreateStep::end(CUresult result) {
  end_flight(*device_);
  if (result != CUDA_SUCCESS) {
    settle(*device_, GPUCAP_KIND_CONTEXT, promised_, 0);
    tell_failure(*process_, *device_, api_, GPUCAP_KIND_CONTEXT, promised_, result);
    return true;
  }
  if (has_figure(*process_, *device_)) {
    look(*process_, *device_, true);
  } else {
    const int64_t card_after = process_->truth().read_whole_device(*device_);
    const bool by_card = card_before_ >= 0 && card_after > card_before_;
    process_->lose_truth(*device_, by_card ? GPUCAP_TRUTH_DEVICE_DIFF : GPUCAP_TRUTH_NONE);
    if (by_card) set_driver_share(*device_, driver_before_ + card_after - card_before_);
    set(device_->gauge->driver_bytes, device_->ledger.driver());
  }
  if (device_->inexact.load(std::memory_order_relaxed)) mark_stale(*device_);  // never a quiet moment: look again soon
  const int64_t taken = device_->ledger.driver() - driver_before_;
  if (taken > 0 && !expected_) {
    set(device_->gauge->context_bytes, static_cast<uint64_t>(taken));
    if (device_->group != nullptr) device_->group->note_context(device_->group_number, static_cast<uint64_t>(taken));
  }
  settle(*device_, GPUCAP_KIND_CONTEXT, promised_, 0);
  const auto took = static_cast<uint64_t>(taken > 0 ? taken : 0);
  if (over_limit(*process_, *device_, static_cast<uint16_t>(api_), took) != GPUCAP_REFUSED_BY_NOTHING) {
    promised_ = took;
    return false;
  }
  tell_charge(*process_, *device_, api_, GPUCAP_KIND_CONTEXT, 0, took);
  return true;
}

CUresult CreateStep::refuse() {
  if (process_->config().refuse_everything) {
    log_line_rarely(LogLevel::kError, "refused %s: %s", name_of(api_), process_->config().complaints[0]);
    return CUDA_ERROR_INVALID_VALUE;
  }
  look(*process_, *device_, true);
  return refuse_by_cap(*process_, *device_, api_, promised_);
}

uint8_t begin_destroy(CUcontext context) { return Process::get() == nullptr ? 0 : set_context_apart(context); }

void end_destroy(CUresult result, CUcontext context, uint8_t number) {
  Process* process = Process::get();
  if (process == nullptr) return;
  if (result != CUDA_SUCCESS) return restore_context(context, number);
  if (number != 0) process->table().take_if(belongs_to, give_back_taken, &number);
  forget_number(number);
  for (int i = 0; i < process->device_count(); ++i) {
    Device& device = *process->device(i);
    if (device.active.load(std::memory_order_acquire)) look(*process, device, true);
  }
}

void gone(CUcontext context) { end_destroy(CUDA_SUCCESS, context, begin_destroy(context)); }

bool primary_is_active(CUdevice device) {
  unsigned int flags = 0;
  int active = 0;
  return real().cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active != 0;
}

void primary_retained(CUcontext context, CUdevice device) {
  if (device >= 0 && device < kMaxDevices) primary_contexts[device] = context;
}

bool primary_released(CUresult result, CUdevice device) {
  if (result != CUDA_SUCCESS || device < 0 || device >= kMaxDevices || primary_is_active(device)) return false;
  CUcontext context = primary_contexts[device];
  primary_contexts[device] = nullptr;
  if (context != nullptr) gone(context);
  return true;
}

}  // namespace gpucap::driver::context
