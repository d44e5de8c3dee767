// The few declarations of NVML that we use, written from its documentation (NVML API reference, driver 450 to 580) and
// checked against nvml.h by a test where that header is found. NVML is opened at run time; nothing links against it.
#pragma once

namespace gpucap::nvml {

using Return = int;  // nvmlReturn_t
inline constexpr Return kSuccess = 0;
inline constexpr Return kInsufficientSize = 7;
inline constexpr Return kFunctionNotFound = 13;
inline constexpr unsigned long long kNotAvailable = ~0ull;  // NVML_VALUE_NOT_AVAILABLE

using DeviceHandle = void*;  // nvmlDevice_t

// nvmlProcessInfo_v2_t, used by nvmlDeviceGetComputeRunningProcesses_v2 and _v3.
struct ProcessInfo {
  unsigned int pid;
  unsigned long long usedGpuMemory;  // bytes
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
};

struct Memory {  // nvmlMemory_t, bytes
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct MemoryV2 {        // nvmlMemory_v2_t, bytes
  unsigned int version;  // by the caller: size and number of the version
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
inline constexpr unsigned int kMemoryVersion2 = sizeof(MemoryV2) | 2u << 24;  // nvmlMemory_v2

inline constexpr unsigned int kMaxUuidBytes = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE

}  // namespace gpucap::nvml
