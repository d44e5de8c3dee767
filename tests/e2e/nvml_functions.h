// NVML as the test programs reach it. The declarations are their own, so that a slip in the library's shows.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <string>

struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlMemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
inline constexpr unsigned kNvmlMemoryV2 = 0x02000028;
struct NvmlProcess {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};

#define NVML_FUNCTIONS(X)                                                      \
  X(nvmlInit_v2, ())                                                           \
  X(nvmlShutdown, ())                                                          \
  X(nvmlDeviceGetHandleByIndex_v2, (unsigned, void**))                         \
  X(nvmlDeviceGetHandleByUUID, (const char*, void**))                          \
  X(nvmlDeviceGetHandleByPciBusId_v2, (const char*, void**))                   \
  X(nvmlDeviceGetComputeRunningProcesses_v3, (void*, unsigned*, NvmlProcess*)) \
  X(nvmlDeviceGetMemoryInfo, (void*, NvmlMemory*))                             \
  X(nvmlDeviceGetMemoryInfo_v2, (void*, NvmlMemoryV2*))

struct NvmlFunctions {
#define NVML_FIELD(name, params) int(*name) params;
  NVML_FUNCTIONS(NVML_FIELD)
#undef NVML_FIELD
};

#ifdef NVML_LINKED
extern "C" {
#define NVML_DECLARATION(name, params) int name params;
NVML_FUNCTIONS(NVML_DECLARATION)
#undef NVML_DECLARATION
}
#endif

// All null for the way "nothing", which leaves NVML alone.
inline NvmlFunctions reach_nvml(const std::string& way) {
  NvmlFunctions functions{};
  if (way == "nothing") return functions;
#ifdef NVML_LINKED
  if (way != "linked") std::exit(2);
#define NVML_FILL(name, params) functions.name = &::name;
#else
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | (way == "default" ? RTLD_GLOBAL : RTLD_LOCAL));
  const auto find = [&](const char* name) {
    void* found = dlsym(way == "default" ? RTLD_DEFAULT : library, name);
    if (found == nullptr) std::exit(2);
    return found;
  };
#define NVML_FILL(name, params) functions.name = reinterpret_cast<int(*) params>(find(#name));
#endif
  NVML_FUNCTIONS(NVML_FILL)
#undef NVML_FILL
  return functions;
}
