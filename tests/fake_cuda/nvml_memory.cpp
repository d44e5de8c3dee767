// Memory of a card and of the processes on it, as the fake NVML shows them.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/fake_cuda/nvml.h"

namespace fake {
namespace {

struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlMemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
constexpr unsigned kMemoryV2 = sizeof(NvmlMemoryV2) | 2u << 24;
static_assert(kMemoryV2 == 0x02000028);

struct ProcessInfoV1 {
  unsigned pid;
  unsigned long long used;
};
struct ProcessInfoV2 {  // also version 3
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance = ~0u;
  unsigned compute_instance = ~0u;
};
static_assert(sizeof(ProcessInfoV1) == 16 && sizeof(ProcessInfoV2) == 24);
constexpr unsigned long long kNotAvailable = ~0ull;

// The caller's array, which must be long enough; *count is its length on the way in, the number of processes after.
template <class Info>
NvmlReturn list_processes(Nvml& state, const NvmlCard& card, unsigned* count, Info* infos) {
  if (count == nullptr) return kNvmlInvalidArgument;
  const char* const hide = std::getenv("FAKE_NVML_NO_PROCESS_MEMORY");
  const bool hidden = hide != nullptr && std::strcmp(hide, "1") == 0;
  std::vector<Info> found;
  state.truth.each(card.physical, [&](pid_t pid, const TruthFigures& figures) {
    if (figures.bytes == 0) return;
    Info& info = found.emplace_back();
    info.pid = static_cast<unsigned>(pid);
    info.used = hidden ? kNotAvailable : figures.bytes;
  });
  const unsigned room = *count;
  *count = static_cast<unsigned>(found.size());
  if (room < found.size()) return kNvmlInsufficientSize;
  if (infos == nullptr && !found.empty()) return kNvmlInvalidArgument;
  std::copy(found.begin(), found.end(), infos);
  return kNvmlSuccess;
}

NvmlReturn list_nothing(unsigned* count) {
  if (count == nullptr) return kNvmlInvalidArgument;
  *count = 0;
  return kNvmlSuccess;
}

}  // namespace
}  // namespace fake

using namespace fake;

FAKE_NVML int nvmlDeviceGetMemoryInfo(NvmlCard* card, NvmlMemory* out) {
  return with_card("nvmlDeviceGetMemoryInfo", card, [&](Nvml& state, const NvmlCard& found) {
    if (out == nullptr) return kNvmlInvalidArgument;
    const uint64_t total = memory_bytes_of_a_card();
    const uint64_t used = std::min(total, state.truth.used(found.physical));
    *out = {total, total - used, used};
    return kNvmlSuccess;
  });
}
FAKE_NVML int nvmlDeviceGetMemoryInfo_v2(NvmlCard* card, NvmlMemoryV2* out) {
  return with_card("nvmlDeviceGetMemoryInfo_v2", card, [&](Nvml& state, const NvmlCard& found) {
    if (out == nullptr) return kNvmlInvalidArgument;
    if (out->version != kMemoryV2) return kNvmlArgumentVersionMismatch;
    const uint64_t total = memory_bytes_of_a_card();
    const uint64_t used = std::min(total, state.truth.used(found.physical));
    *out = {kMemoryV2, total, 0, total - used, used};
    return kNvmlSuccess;
  });
}

#define FAKE_PROCESS_LIST(name, info)                                                                                 \
  FAKE_NVML int name(NvmlCard* card, unsigned* count, info* infos) {                                                  \
    return with_card(#name, card,                                                                                     \
                     [&](Nvml& state, const NvmlCard& found) { return list_processes(state, found, count, infos); }); \
  }
FAKE_PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses, ProcessInfoV1)
FAKE_PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v2, ProcessInfoV2)
FAKE_PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, ProcessInfoV2)

// Nothing draws on these cards, and nothing runs through MPS.
#define FAKE_EMPTY_LIST(name)                                                                   \
  FAKE_NVML int name(NvmlCard* card, unsigned* count, void*) {                                  \
    return with_card(#name, card, [&](Nvml&, const NvmlCard&) { return list_nothing(count); }); \
  }
FAKE_EMPTY_LIST(nvmlDeviceGetGraphicsRunningProcesses)
FAKE_EMPTY_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2)
FAKE_EMPTY_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3)
FAKE_EMPTY_LIST(nvmlDeviceGetMPSComputeRunningProcesses)
FAKE_EMPTY_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2)
FAKE_EMPTY_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3)
