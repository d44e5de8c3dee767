#include "shim/driver/vmm.h"

#include "shim/driver/reclaim.h"

namespace gpucap::driver::vmm {
namespace {

// A handle's record: bytes = its size, link = open handles in the high half, mappings in the low half.
// A mapping's record: key = address, bytes = the handle, link = size in units of 64 KiB.
constexpr uint64_t kUnit = uint64_t{64} << 10;
constexpr int kHandleShift = 16;

struct Counts {
  int handles;
  int mappings;
};

bool change_counts(core::Record& record, void* argument) {
  const auto* delta = static_cast<const Counts*>(argument);
  const int handles = static_cast<int>(record.link >> kHandleShift) + delta->handles;
  const int mappings = static_cast<int>(record.link & 0xffff) + delta->mappings;
  record.link = static_cast<uint32_t>(handles < 0 ? 0 : handles) << kHandleShift |
                static_cast<uint32_t>(mappings < 0 ? 0 : mappings);
  return record.link == 0;
}

// True if the record fell to nothing and is out of the table now.
bool add_counts(Process& process, CUmemGenericAllocationHandle handle, Counts delta, core::Record* record) {
  return process.table().update(core::Space::kVmmHandle, handle, change_counts, &delta, record) && record->link == 0;
}

}  // namespace

Go CreateStep::begin(Api api, uint64_t size, const CUmemAllocationProp* prop) {
  process_ = Process::get();
  if (process_ == nullptr || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return Go::kPass;
  device_ = process_->device(prop->location.id);
  if (device_ == nullptr) return Go::kPass;
  api_ = api;
  size_ = size;
  if (reserve(*process_, *device_, {size, static_cast<uint16_t>(api_), reclaim}) == Verdict::kRefused)
    return Go::kRefuse;
  begin_flight(*device_);
  return Go::kCharge;
}

void CreateStep::end(CUresult result, CUmemGenericAllocationHandle handle) {
  const bool made = result == CUDA_SUCCESS;
  if (made) {
    core::Record record;
    record.space = core::Space::kVmmHandle;
    record.key = handle;
    record.bytes = size_;
    record.kind = GPUCAP_KIND_VMM;
    record.device = static_cast<uint8_t>(device_->ordinal);
    record.link = 1u << kHandleShift;
    note(*process_, record);
  }
  settle(*device_, GPUCAP_KIND_VMM, size_, made ? size_ : 0);
  end_flight(*device_);
  if (!made) return tell_failure(*process_, *device_, api_, GPUCAP_KIND_VMM, size_, result);
  count_live(*device_, 1);
  tell_charge(*process_, *device_, api_, GPUCAP_KIND_VMM, handle, size_);
}

void count_handle(CUmemGenericAllocationHandle handle, int delta) {
  Process* process = Process::get();
  core::Record record;
  if (process != nullptr) add_counts(*process, handle, {delta, 0}, &record);
}

// Counted before the driver maps, so that a release on another thread cannot make the memory look gone in between.
void before_map(CUmemGenericAllocationHandle handle) {
  Process* process = Process::get();
  core::Record record;
  if (process != nullptr) add_counts(*process, handle, {0, 1}, &record);
}

void after_map(CUresult result, CUdeviceptr address, uint64_t size, CUmemGenericAllocationHandle handle) {
  Process* process = Process::get();
  if (process == nullptr) return;
  core::Record record;
  if (result != CUDA_SUCCESS) {
    add_counts(*process, handle, {0, -1}, &record);
    return;
  }
  if (!process->table().find(core::Space::kVmmHandle, handle, &record)) return;  // imported: its exporter pays
  core::Record mapping;
  mapping.space = core::Space::kVmmMapping;
  mapping.key = address;
  mapping.bytes = handle;
  mapping.device = record.device;
  mapping.link = static_cast<uint32_t>(size / kUnit);
  note(*process, mapping);
}

void ReleaseStep::begin(Api api, CUmemGenericAllocationHandle handle) {
  process_ = Process::get();
  api_ = api;
  if (process_ == nullptr) return;
  Counts delta{-1, 0};
  if (!process_->table().update(core::Space::kVmmHandle, handle, change_counts, &delta, &record_)) return;
  device_ = process_->device(record_.device);
  gone_ = record_.link == 0;
  if (gone_) begin_flight(*device_);
}

void ReleaseStep::end(CUresult result) {
  if (device_ == nullptr) {
    // An imported handle may have been the last to hold memory that this process made and has released.
    for (int i = 0; process_ != nullptr && i < process_->device_count(); ++i) mark_stale(*process_->device(i));
    return;
  }
  if (result != CUDA_SUCCESS) {
    if (gone_) {
      record_.link = 1u << kHandleShift;
      note(*process_, record_);
      end_flight(*device_);
    } else {
      count_handle(record_.key, 1);
    }
    return;
  }
  if (!gone_) return;
  charge(*device_, GPUCAP_KIND_VMM, -static_cast<int64_t>(record_.bytes));
  end_flight(*device_);
  count_live(*device_, -1);
  tell_release(*process_, *device_, api_, GPUCAP_KIND_VMM, record_.key, record_.bytes);
}

// The next mapping of the range, out of the books; false when there is none left.
bool UnmapStep::take_next(Ended* ended) {
  while (at_ < end_) {
    if (!process_->table().take(core::Space::kVmmMapping, at_, &ended->mapping)) {
      at_ += kUnit;
      continue;
    }
    const uint64_t length = uint64_t{ended->mapping.link} * kUnit;
    at_ += length == 0 ? kUnit : length;
    if (!add_counts(*process_, ended->mapping.bytes, {0, -1}, &ended->memory)) ended->memory = core::Record{};
    return true;
  }
  return false;
}

void UnmapStep::begin(CUdeviceptr address, uint64_t size) {
  process_ = Process::get();
  if (process_ == nullptr) return;
  for (int i = 0; i < process_->device_count(); ++i) begin_flight(*process_->device(i));
  at_ = address;
  end_ = size > UINT64_MAX - address ? address : address + size;
  while (count_ < kMost && take_next(&ended_[count_])) ++count_;
}

void UnmapStep::give_back(Api api, const core::Record& memory) {
  Device& device = *process_->device(memory.device);
  charge(device, GPUCAP_KIND_VMM, -static_cast<int64_t>(memory.bytes));
  count_live(device, -1);
  tell_release(*process_, device, api, GPUCAP_KIND_VMM, memory.key, memory.bytes);
}

void UnmapStep::end(Api api, CUresult result) {
  if (process_ == nullptr) return;
  for (int i = 0; i < count_; ++i) {
    const Ended& ended = ended_[i];
    const bool was_last = ended.memory.space != core::Space::kNone;
    if (result == CUDA_SUCCESS) {
      if (was_last) give_back(api, ended.memory);
      continue;
    }
    core::Record memory = ended.memory;
    if (was_last) {
      memory.link = 1;  // one mapping
      note(*process_, memory);
    } else {
      add_counts(*process_, ended.mapping.bytes, {0, 1}, &memory);
    }
    note(*process_, ended.mapping);
  }
  // One call may end more mappings than could be remembered.
  Ended rest;
  while (result == CUDA_SUCCESS && take_next(&rest))
    if (rest.memory.space != core::Space::kNone) give_back(api, rest.memory);
  for (int i = 0; i < process_->device_count(); ++i) end_flight(*process_->device(i));
}

}  // namespace gpucap::driver::vmm
