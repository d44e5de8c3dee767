#include "shim/nvml/truth.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "shim/loader/real_dl.h"
#include "shim/nvml/nvml_api.h"
#include "shim/process/log.h"

namespace gpucap::nvml {
namespace {

struct Functions {
  bool tried = false;
  bool ready = false;
  Return (*init)() = nullptr;
  Return (*handle_by_pci_bus_id)(const char*, DeviceHandle*) = nullptr;
  Return (*handle_by_uuid)(const char*, DeviceHandle*) = nullptr;
  Return (*uuid)(DeviceHandle, char*, unsigned int) = nullptr;
  Return (*compute_processes)(DeviceHandle, unsigned int*, ProcessInfo*) = nullptr;
  Return (*memory_info)(DeviceHandle, Memory*) = nullptr;
};
constinit Functions functions;

template <typename Function>
void find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(loader::real_dlsym()(library, name));
}

// Called under the activation lock.
void load() {
  functions.tried = true;
  void* library = loader::load_library("libnvidia-ml.so.1");
  if (library == nullptr) return;
  find(library, "nvmlInit_v2", &functions.init);
  find(library, "nvmlDeviceGetHandleByPciBusId_v2", &functions.handle_by_pci_bus_id);
  find(library, "nvmlDeviceGetHandleByUUID", &functions.handle_by_uuid);
  find(library, "nvmlDeviceGetUUID", &functions.uuid);
  find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &functions.compute_processes);
  if (functions.compute_processes == nullptr)
    find(library, "nvmlDeviceGetComputeRunningProcesses_v2", &functions.compute_processes);
  find(library, "nvmlDeviceGetMemoryInfo", &functions.memory_info);
  functions.ready = functions.init != nullptr && functions.handle_by_uuid != nullptr && functions.init() == kSuccess;
}

// NVML lists every process of the card; a card shared by more than this many shows the rest in a second, larger call.
constexpr unsigned int kFewProcesses = 64;
constexpr unsigned int kManyProcesses = 2048;

int64_t own_bytes(const ProcessInfo* list, unsigned int count) {
  const auto self = static_cast<unsigned int>(getpid());
  bool unknown = false;
  int64_t bytes = 0;
  for (unsigned int i = 0; i < count; ++i) {
    if (list[i].pid != self) continue;
    if (list[i].usedGpuMemory == kNotAvailable) {
      unknown = true;
    } else {
      bytes += static_cast<int64_t>(list[i].usedGpuMemory);  // one entry a MIG instance
    }
  }
  return unknown ? -1 : bytes;
}

int64_t bytes_of_process(const Device& device) {
  if (device.truth_handle == nullptr || functions.compute_processes == nullptr) return -1;
  ProcessInfo few[kFewProcesses];
  unsigned int count = kFewProcesses;
  Return result = functions.compute_processes(device.truth_handle, &count, few);
  if (result == kSuccess) return own_bytes(few, count);
  if (result != kInsufficientSize) return -1;
  static ProcessInfo many[kManyProcesses];
  static core::SpinLock lock;
  const core::SpinGuard guard(lock);
  count = kManyProcesses;
  result = functions.compute_processes(device.truth_handle, &count, many);
  return result == kSuccess ? own_bytes(many, count) : -1;
}

int64_t bytes_of_device(const Device& device) {
  if (device.truth_handle == nullptr || functions.memory_info == nullptr) return -1;
  Memory memory{};
  if (functions.memory_info(device.truth_handle, &memory) != kSuccess) return -1;
  return static_cast<int64_t>(memory.used);
}

// NVML reads files, and the program did not ask it to.
template <int64_t (*kAsk)(const Device&)>
int64_t keeping_errno(const Device& device) {
  const int saved = errno;
  const int64_t bytes = kAsk(device);
  errno = saved;
  return bytes;
}
int64_t read(const Device& device) { return keeping_errno<bytes_of_process>(device); }
int64_t read_whole_device(const Device& device) { return keeping_errno<bytes_of_device>(device); }

// By its place on the bus NVML finds a card without starting others (some 6 ms each); a search for a UUID may start
// each that it comes across (NVML API reference).
bool find_by_place(const Device& device, DeviceHandle* handle) {
  if (functions.handle_by_pci_bus_id == nullptr || functions.uuid == nullptr || device.pci_bus_id[0] == '\0')
    return false;
  char uuid[kMaxUuidBytes] = {};
  return functions.handle_by_pci_bus_id(device.pci_bus_id, handle) == kSuccess &&
         functions.uuid(*handle, uuid, sizeof(uuid)) == kSuccess && strcmp(uuid, device.uuid_text) == 0;
}

// CUDA gives a MIG instance's UUID like a card's; NVML knows it by its own prefix.
bool find_handle(const Device& device, DeviceHandle* handle) {
  if (find_by_place(device, handle)) return true;
  if (functions.handle_by_uuid(device.uuid_text, handle) == kSuccess) return true;
  char instance[sizeof(device.uuid_text)];
  memcpy(instance, device.uuid_text, sizeof(instance));
  memcpy(instance, "MIG-", 4);
  return functions.handle_by_uuid(instance, handle) == kSuccess;
}

gpucap_truth open(Device& device) {
  if (!functions.tried) load();
  if (!functions.ready) return GPUCAP_TRUTH_NONE;
  DeviceHandle handle = nullptr;
  if (!find_handle(device, &handle)) return GPUCAP_TRUTH_NONE;
  device.truth_handle = handle;
  if (read(device) >= 0) return GPUCAP_TRUTH_NVML;
  return read_whole_device(device) >= 0 ? GPUCAP_TRUTH_DEVICE_DIFF : GPUCAP_TRUTH_NONE;
}

}  // namespace

TruthReader truth_reader() { return {open, read, read_whole_device}; }

}  // namespace gpucap::nvml
