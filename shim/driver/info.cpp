#include "shim/driver/info.h"

#include "shim/driver/current.h"
#include "shim/process/limits.h"

namespace gpucap::driver::info {

Figures of_current_device() {
  Process* process = Process::get();
  if (process == nullptr) return {};
  Device* device = current(*process).device;
  if (device == nullptr) return {};
  process->activate(*device);
  const Shown shown = shown_memory(*process, *device);
  return shown.bounded ? Figures{shown.free_bytes, shown.total_bytes} : Figures{};
}

uint64_t total_of(CUdevice ordinal) {
  Process* process = Process::get();
  Device* device = process == nullptr ? nullptr : process->device(ordinal);
  return device == nullptr ? UINT64_MAX : shown_total(*process, *device);
}

}  // namespace gpucap::driver::info
