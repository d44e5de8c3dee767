#include "shim/driver/shrink_time.h"

#include "shim/driver/pool_registry.h"

namespace gpucap::driver::pool {

std::atomic<Epoch> shrink_times{0};

ShrinkTime::ShrinkTime() : counted_(high_water() != 0) {
  if (!counted_) return;
  before_ = shrink_times.fetch_add(kOne);
  calls_ = calls();
  looks_ = look_times();
}

ShrinkTime::~ShrinkTime() {
  if (counted_) shrink_times.fetch_sub(1);
}

bool ShrinkTime::alone() const { return counted_ && is_quiet(before_) && shrink_times.load() == before_ + kOne; }

bool ShrinkTime::undisturbed() const {
  if (!alone() || !calls_.none_under_way) return false;
  const Calls now = calls();
  return now.none_under_way && now.begun == calls_.begun;
}

ShrinkTime::Calls ShrinkTime::calls() {
  Calls sum;
  Process* process = Process::get();
  for (int i = 0; process != nullptr && i < process->device_count(); ++i) {
    const Device& device = *process->device(i);
    if (!device.active.load(std::memory_order_acquire)) continue;
    const uint64_t begun = flights_begun(device);
    sum.begun += begun;
    sum.none_under_way = sum.none_under_way && all_ended(device, begun);
  }
  return sum;
}

}  // namespace gpucap::driver::pool
