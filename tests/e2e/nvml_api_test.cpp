// Our declarations of NVML against nvml.h, where that is found. Nothing here runs: the assertions are the compiler's.
#include "shim/nvml/nvml_api.h"

#include <nvml.h>

#include <cstddef>
#include <type_traits>

namespace gpucap::nvml {

template <typename Ours, typename Theirs>
constexpr bool same_size = sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs);
#define SAME_FIELD(ours, theirs, field)                            \
  static_assert(offsetof(ours, field) == offsetof(theirs, field)); \
  static_assert(sizeof(ours::field) == sizeof(theirs::field));

static_assert(same_size<Memory, nvmlMemory_t>);
SAME_FIELD(Memory, nvmlMemory_t, total)
SAME_FIELD(Memory, nvmlMemory_t, free)
SAME_FIELD(Memory, nvmlMemory_t, used)

static_assert(same_size<MemoryV2, nvmlMemory_v2_t>);
SAME_FIELD(MemoryV2, nvmlMemory_v2_t, version)
SAME_FIELD(MemoryV2, nvmlMemory_v2_t, total)
SAME_FIELD(MemoryV2, nvmlMemory_v2_t, reserved)
SAME_FIELD(MemoryV2, nvmlMemory_v2_t, free)
SAME_FIELD(MemoryV2, nvmlMemory_v2_t, used)
static_assert(kMemoryVersion2 == nvmlMemory_v2);

static_assert(same_size<ProcessInfo, nvmlProcessInfo_t>);
SAME_FIELD(ProcessInfo, nvmlProcessInfo_t, pid)
SAME_FIELD(ProcessInfo, nvmlProcessInfo_t, usedGpuMemory)
SAME_FIELD(ProcessInfo, nvmlProcessInfo_t, gpuInstanceId)
SAME_FIELD(ProcessInfo, nvmlProcessInfo_t, computeInstanceId)

static_assert(sizeof(DeviceHandle) == sizeof(nvmlDevice_t) && std::is_pointer_v<nvmlDevice_t>);
static_assert(sizeof(Return) == sizeof(nvmlReturn_t));
static_assert(kSuccess == NVML_SUCCESS && kInsufficientSize == NVML_ERROR_INSUFFICIENT_SIZE);
static_assert(kFunctionNotFound == NVML_ERROR_FUNCTION_NOT_FOUND);
static_assert(kMaxUuidBytes == NVML_DEVICE_UUID_V2_BUFFER_SIZE);

}  // namespace gpucap::nvml
