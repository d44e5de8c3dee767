#include "shim/driver/look.h"

#include "shim/driver/graph.h"
#include "shim/driver/pool.h"
#include "shim/process/quota.h"

namespace gpucap::driver::look {

bool bring_up_to_date(Process& process, Device& device) {
  const bool pools = pool::refresh_all(process, device);
  return graph::refresh(process, device) || pools;
}

void something_moved() {
  Process* process = Process::get();
  if (process == nullptr) return;
  for (int i = 0; i < process->device_count(); ++i) {
    Device& device = *process->device(i);
    if (device.active.load(std::memory_order_relaxed)) mark_stale(device);
  }
}

void put_right(const pool::ShrinkTime& time) {
  Process* process = Process::get();
  if (process == nullptr) return;
  pool::refresh_shrinkable(*process, time);
  for (int i = 0; i < process->device_count(); ++i) look_at_rest(*process, *process->device(i));
}

}  // namespace gpucap::driver::look
