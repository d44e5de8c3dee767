#include "shim/driver/linear.h"

#include "shim/driver/reclaim.h"
#include "shim/process/pages.h"

namespace gpucap::driver::linear {
namespace {

uint64_t most_taken(gpucap_kind kind, uint64_t bytes) {
  if (is_small(bytes)) return kind == GPUCAP_KIND_MANAGED ? core::round_up(bytes, core::BlockMap::kGranule) : kBlock;
  return core::round_up(bytes, kBlock);
}

}  // namespace

[[gnu::hot]] Go Step::begin(Api api, gpucap_kind kind, uint64_t bytes) {
  process_ = Process::get();
  if (process_ == nullptr) return Go::kPass;
  const Current now = current(*process_);
  device_ = now.device;
  if (device_ == nullptr) return Go::kPass;  // no context: the driver will say so
  api_ = api;
  kind_ = kind;
  context_ = now.context;
  bytes_ = bytes;
  promised_ = most_taken(kind, bytes);
  const bool in_block = shares_block(kind, bytes);
  if (try_quickly(*process_, *device_, promised_, in_block)) [[likely]] {
    begin_flight(*device_);
    return Go::kCharge;
  }
  // Where there is no room for another block, it may fit into one that is there already: then nobody waits for room.
  Request request(promised_, static_cast<uint16_t>(api_), reclaim);
  request.to_the_end = !in_block;
  if (reserve_otherwise(*process_, *device_, request) == Verdict::kRefused) {
    if (request.to_the_end) return Go::kRefuse;
    must_not_grow_ = device_->blocks.has_gap(bytes);
    request.to_the_end = true;
    if (!must_not_grow_ && reserve(*process_, *device_, request) == Verdict::kRefused) return Go::kRefuse;
    if (must_not_grow_) promised_ = 0;
  }
  begin_flight(*device_);
  return Go::kCharge;
}

[[gnu::hot]] CUresult Step::end(CUresult result, uint64_t address) {
  if (result != CUDA_SUCCESS) [[unlikely]] {
    settle(*device_, kind_, promised_, 0);
    end_flight(*device_);
    tell_failure(*process_, *device_, api_, kind_, bytes_, result);
    return result;
  }
  core::Record record;
  record.space = core::Space::kPointer;
  record.key = address;
  record.kind = static_cast<uint8_t>(kind_);
  record.device = static_cast<uint8_t>(device_->ordinal);
  record.context = context_;
  uint64_t taken = promised_;
  if (shares_block(kind_, bytes_)) {
    record.bytes = bytes_;  // the block map knows what is held for it
    taken = device_->blocks.add(address, bytes_, kernel_pages()) ? kBlock : 0;
    if (must_not_grow_ && taken != 0 && observes(*process_)) {
      // The gap was gone: noted as over the limit, and let through.
      end_flight(*device_);
      if (reserve(*process_, *device_, {taken, static_cast<uint16_t>(api_)}) == Verdict::kGranted) promised_ = taken;
      begin_flight(*device_);
    }
    if (must_not_grow_ && promised_ != taken) {
      real().cuMemFree_v2(address);
      device_->blocks.remove(address, bytes_);
      end_flight(*device_);
      return refuse();
    }
  } else {
    record.bytes = taken;
  }
  note(*process_, record);
  if (taken == 0) {
    keep_promise(*device_, kind_, promised_);  // it found room in a block that was there
  } else {
    settle(*device_, kind_, promised_, taken);
  }
  end_flight(*device_);
  count_live(*device_, 1);
  tell_charge(*process_, *device_, api_, kind_, address, bytes_);
  return result;
}

}  // namespace gpucap::driver::linear
