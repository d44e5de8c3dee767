#include "shim/driver/pointers.h"

#include "shim/driver/linear.h"
#include "shim/driver/pool_registry.h"
#include "shim/process/pages.h"

namespace gpucap::driver::pointers {

[[gnu::hot]] void Step::begin(Api api, uint64_t address, bool on_stream) {
  api_ = api;
  on_stream_ = on_stream;
  if (address == 0) return;
  process_ = Process::get();
  if (process_ == nullptr) [[unlikely]]
    return;
  if (!process_->table().take(core::Space::kPointer, address, &record_)) return;
  device_ = process_->device(record_.device);
  if (kind() == GPUCAP_KIND_POOL) return;
  begin_flight(*device_);
  if (linear::shares_block(kind(), record_.bytes)) block_emptied_ = device_->blocks.remove(address, record_.bytes);
}

Timing Step::timing() const {
  return kind() == GPUCAP_KIND_POOL ? Timing::kOneInSixteen : linear::timing_of(kind(), record_.bytes);
}

[[gnu::hot]] void Step::end(CUresult result) {
  if (process_ == nullptr) return;
  if (device_ == nullptr) [[unlikely]] {
    // Not ours: imported, of a graph node, or from before. If the driver took it, something went back somewhere.
    if (result == CUDA_SUCCESS) {
      for (int i = 0; i < process_->device_count(); ++i) mark_stale(*process_->device(i));
    }
    return;
  }
  const bool in_pool = kind() == GPUCAP_KIND_POOL;
  const bool small = linear::shares_block(kind(), record_.bytes);
  if (result != CUDA_SUCCESS) [[unlikely]] {
    if (small && device_->blocks.add(record_.key, record_.bytes, kernel_pages()) != block_emptied_)
      mark_stale(*device_);
    note(*process_, record_);
    if (!in_pool) end_flight(*device_);
    return;
  }
  count_live(*device_, -1);
  if (in_pool) {
    pool::block_freed(*process_, record_);
  } else {
    const uint64_t bytes = small ? (block_emptied_ ? linear::kBlock : 0) : record_.bytes;
    if (on_stream_) mark_stale(*device_);  // really free only when the stream gets there
    charge(*device_, kind(), -static_cast<int64_t>(bytes));
    end_flight(*device_);
  }
  tell_release(*process_, *device_, api_, kind(), record_.key, record_.bytes);
}

}  // namespace gpucap::driver::pointers
