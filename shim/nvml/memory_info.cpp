#include "shim/nvml/memory_info.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "shim/core/visible_devices.h"
#include "shim/nvml/identity.h"
#include "shim/nvml/real_nvml.h"
#include "shim/process/limits.h"
#include "shim/process/process.h"

namespace gpucap::nvml {
namespace {

constexpr unsigned int kMostDevices = 64;

// Where CUDA runs, its own list of devices says which one is meant. A device that was not used yet has no charges, and
// asking about it must not set it up.
Figures of_process(Process& process, const Identity& identity) {
  if (!identity.has_uuid) return {};
  for (int i = 0; i < process.device_count(); ++i) {
    Device& device = *process.device(i);
    if (memcmp(device.uuid, identity.uuid, sizeof(device.uuid)) != 0) continue;
    const Shown shown = shown_memory(process, device);
    return {shown.bounded, shown.total_bytes, shown.used_bytes, shown.free_bytes};
  }
  return {};
}

// The number that CUDA would give to the device if it were started now.
int ordinal_of(const Identity& identity) {
  std::string_view machine[kMostDevices];
  unsigned int count = 0;
  if (real<Return(unsigned int*)>(Function::k_nvmlDeviceGetCount_v2)(&count) != kSuccess) return core::kNotVisible;
  if (count > kMostDevices) count = kMostDevices;
  const auto handle_by_index = real<Return(unsigned int, DeviceHandle*)>(Function::k_nvmlDeviceGetHandleByIndex_v2);
  for (unsigned int i = 0; i < count; ++i) {
    DeviceHandle handle = nullptr;
    Identity scratch;
    if (handle_by_index(i, &handle) != kSuccess) continue;
    const Identity* other = identity_of(handle, &scratch);
    if (other != nullptr && other != &scratch) machine[i] = other->text;
  }
  return core::visible_ordinal({machine, count}, identity.text, getenv("CUDA_VISIBLE_DEVICES"));
}

// Before CUDA, or without it: the environment alone decides, and this process holds nothing.
Figures of_environment(const Identity& identity, uint64_t physical_bytes) {
  const Config& config = Process::config_without_process();
  if (config.disabled || (!config.refuse_everything && config.limits.empty() && config.policy.limits.empty()))
    return {};
  const int ordinal = ordinal_of(identity);
  if (ordinal == core::kNotVisible) return {};
  // A limit that cannot be read is no memory at all, as it is for CUDA.
  const auto number = static_cast<uint32_t>(ordinal);
  const bool observes = config.on_limit.mode == core::OnLimitValue::Mode::kObserve && !config.refuse_everything;
  const uint64_t enforced =
      config.observes_policy ? core::kNoLimit : config.policy.for_device(number, identity.text, physical_bytes);
  const uint64_t limit = observes ? enforced : config.limit_of(number, identity.text, physical_bytes);
  if (limit == core::kNoLimit) return {};
  return {true, limit, 0, limit};
}

}  // namespace

Figures figures_of(DeviceHandle device, uint64_t physical_bytes) {
  const int saved = errno;
  Figures figures;
  Identity scratch;
  if (const Identity* identity = identity_of(device, &scratch)) {
    Process* process = Process::get_if_started();
    figures = process != nullptr ? of_process(*process, *identity) : of_environment(*identity, physical_bytes);
  }
  errno = saved;
  return figures;
}

}  // namespace gpucap::nvml
