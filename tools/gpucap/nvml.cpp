// NVML by dlopen: see nvml.h. The declarations follow NVML's documentation.
#include "tools/gpucap/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "shim/core/visible_devices.h"
#include "wire/segment_reader.h"

namespace gpucap::tools {
namespace {

constexpr int kSuccess = 0;
constexpr int kInsufficientSize = 7;
constexpr unsigned long long kNotAvailable = ~0ull;
constexpr unsigned int kMostCards = 256;
constexpr unsigned int kMostProcesses = 4096;
using Text = std::array<char, 96>;  // as long as the longest that NVML gives out

template <class Function>
void find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
}

std::string reason_text(int result) {
  switch (result) {
    case 9:
      return "the NVIDIA driver is not loaded";
    case 15:
      return "the GPU is lost";
    case 18:
      return "the driver and its libraries are of different versions";
    case 4:
      return "no permission to talk to the driver";
    default:
      return "nvmlInit_v2 gave error " + std::to_string(result);
  }
}

}  // namespace

Nvml::~Nvml() {
  if (started_ && shutdown_ != nullptr) shutdown_();
  if (library_ != nullptr) dlclose(library_);
}

bool Nvml::open(std::string* reason) {
  library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    *reason = "libnvidia-ml.so.1 cannot be loaded: is the NVIDIA driver installed?";
    return false;
  }
  Return (*init)() = nullptr;
  find(library_, "nvmlInit_v2", &init);
  find(library_, "nvmlShutdown", &shutdown_);
  find(library_, "nvmlSystemGetDriverVersion", &driver_version_);
  find(library_, "nvmlDeviceGetCount_v2", &count_);
  find(library_, "nvmlDeviceGetHandleByIndex_v2", &by_index_);
  find(library_, "nvmlDeviceGetUUID", &uuid_);
  find(library_, "nvmlDeviceGetName", &name_);
  find(library_, "nvmlDeviceGetMemoryInfo", &memory_);
  find(library_, "nvmlDeviceGetComputeRunningProcesses_v3", &processes_);
  if (processes_ == nullptr) find(library_, "nvmlDeviceGetComputeRunningProcesses_v2", &processes_);
  find(library_, "nvmlDeviceGetMaxMigDeviceCount", &instance_count_);
  find(library_, "nvmlDeviceGetMigDeviceHandleByIndex", &instance_);
  if (init == nullptr || count_ == nullptr || by_index_ == nullptr || uuid_ == nullptr || memory_ == nullptr) {
    *reason = "libnvidia-ml.so.1 is too old";
    return false;
  }
  const Return result = init();
  started_ = result == kSuccess;
  if (!started_) *reason = reason_text(result);
  return started_;
}

std::string Nvml::driver_version() const {
  Text text = {};
  if (driver_version_ == nullptr || driver_version_(text.data(), text.size() - 1) != kSuccess) return "";
  return wire::clean_text(std::string_view(text.data(), text.size()));
}

bool Nvml::describe(void* handle, Card* card) const {
  Text text = {};
  if (uuid_(handle, text.data(), text.size() - 1) != kSuccess) return false;
  card->handle = handle;
  card->uuid = wire::clean_text(std::string_view(text.data(), text.size()));
  text = {};
  if (name_ != nullptr && name_(handle, text.data(), text.size() - 1) == kSuccess) {
    card->name = wire::clean_text(std::string_view(text.data(), text.size()));
  }
  return true;
}

std::vector<Card> Nvml::instances_of(void* handle) const {
  std::vector<Card> instances;
  unsigned int count = 0;
  if (instance_count_ == nullptr || instance_ == nullptr || instance_count_(handle, &count) != kSuccess) return {};
  for (unsigned int i = 0; i < std::min(count, kMostCards); ++i) {
    void* instance = nullptr;
    Card card;
    if (instance_(handle, i, &instance) == kSuccess && describe(instance, &card)) instances.push_back(card);
  }
  return instances;
}

std::vector<Card> Nvml::visible_cards(const char* visible) const {
  unsigned int count = 0;
  if (count_(&count) != kSuccess) return {};
  std::vector<Card> machine;
  std::vector<Card> candidates;
  for (unsigned int i = 0; i < std::min(count, kMostCards); ++i) {
    void* handle = nullptr;
    Card card;
    if (by_index_(i, &handle) != kSuccess || !describe(handle, &card)) continue;
    machine.push_back(card);
    const std::vector<Card> instances = instances_of(handle);
    if (instances.empty()) candidates.push_back(card);
    candidates.insert(candidates.end(), instances.begin(), instances.end());
  }
  std::vector<std::string_view> uuids;
  for (const Card& card : machine) uuids.push_back(card.uuid);
  std::vector<Card> cards;
  for (Card& card : candidates) {
    const int ordinal = core::visible_ordinal(uuids, card.uuid, visible);
    if (ordinal == core::kNotVisible) continue;
    card.ordinal = static_cast<uint32_t>(ordinal);
    if (read_memory(&card)) cards.push_back(card);
  }
  std::sort(cards.begin(), cards.end(), [](const Card& a, const Card& b) { return a.ordinal < b.ordinal; });
  return cards;
}

bool Nvml::read_memory(Card* card) const {
  Memory memory = {};
  if (memory_(card->handle, &memory) != kSuccess) return false;
  card->total_bytes = memory.total;
  card->free_bytes = memory.free;
  return true;
}

Nvml::ProcessFigures Nvml::process_figures(const Card& card) const {
  if (processes_ == nullptr) return ProcessFigures::kUnknown;
  std::vector<Process> list(64);
  auto count = static_cast<unsigned int>(list.size());
  Return result = processes_(card.handle, &count, list.data());
  if (result == kInsufficientSize) {
    list.resize(kMostProcesses);
    count = kMostProcesses;
    result = processes_(card.handle, &count, list.data());
  }
  if (result != kSuccess || count > list.size()) return ProcessFigures::kUnknown;
  list.resize(count);
  if (list.empty()) return ProcessFigures::kNoProcess;
  const bool given =
      std::any_of(list.begin(), list.end(), [](const Process& p) { return p.used_bytes != kNotAvailable; });
  return given ? ProcessFigures::kGiven : ProcessFigures::kHidden;
}

}  // namespace gpucap::tools
