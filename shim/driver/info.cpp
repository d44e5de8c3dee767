#include "shim/driver/info.h"

#include "shim/driver/current.h"
#include "shim/process/quota.h"

namespace gpucap::driver::info {

Figures of_current_device() {
  Process* process = Process::get();
  if (process == nullptr) return {};
  Device* device = current(*process).device;
  if (device == nullptr || !device->ledger.limited()) return {};
  process->activate(*device);
  look_if_stale(*process, *device);
  return {device->ledger.headroom(), device->ledger.limit()};
}

uint64_t total_of(CUdevice ordinal) {
  Process* process = Process::get();
  Device* device = process == nullptr ? nullptr : process->device(ordinal);
  return device == nullptr ? UINT64_MAX : device->ledger.limit();
}

}  // namespace gpucap::driver::info
