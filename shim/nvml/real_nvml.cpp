#include "shim/nvml/real_nvml.h"

#include <atomic>
#include <cstring>

#include "shim/loader/real_dl.h"
#include "shim/nvml/exports.h"

namespace gpucap::nvml {
namespace {

constexpr int kFunctions = static_cast<int>(Function::kCount);
constexpr int kHooks = static_cast<int>(Function::kHooked);

constexpr const char* kNames[] = {
#define GPUCAP_NVML(name, params, args, verb) #name,
#include "shim/nvml/nvml_table.inc"
#undef GPUCAP_NVML
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetCount_v2",
    "nvmlDeviceGetHandleByIndex_v2",
};
static_assert(sizeof(kNames) / sizeof(kNames[0]) == kFunctions);

void* const kStandIns[] = {
#define GPUCAP_NVML(name, params, args, verb) reinterpret_cast<void*>(&::name),
#include "shim/nvml/nvml_table.inc"
#undef GPUCAP_NVML
};

// Every thread that comes early finds the same addresses, so all may write them.
constinit std::atomic<bool> ready{false};
constinit std::atomic<void*> addresses[kFunctions]{};

bool find_all() {
  if (ready.load(std::memory_order_acquire)) return true;
  void* library = loader::handle_if_loaded("libnvidia-ml.so.1");
  if (library == nullptr) return false;
  for (int i = 0; i < kFunctions; ++i)
    addresses[i].store(loader::real_dlsym()(library, kNames[i]), std::memory_order_relaxed);
  ready.store(true, std::memory_order_release);
  return true;
}

int find_by_name(const char* name) {
  for (int i = 0; i < kHooks; ++i)
    if (strcmp(kNames[i], name) == 0) return i;
  return kHooks;
}

}  // namespace

void* real_address(Function function) {
  return find_all() ? addresses[static_cast<int>(function)].load(std::memory_order_relaxed) : nullptr;
}

bool has(const char* name) { return find_by_name(name) != kHooks; }

void* hook_for_real_address(const void* address) {
  if (address == nullptr || !find_all()) return nullptr;
  for (int i = 0; i < kHooks; ++i)
    if (addresses[i].load(std::memory_order_relaxed) == address) return kStandIns[i];
  return nullptr;
}

void* hook_for_name(const char* name) {
  const int number = find_by_name(name);
  return number != kHooks && real_address(static_cast<Function>(number)) != nullptr ? kStandIns[number] : nullptr;
}

}  // namespace gpucap::nvml
