// The driver as a client reaches it, in each of the ways that programs use.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "shim/driver/cuda.h"

// name as exported, name and version and flags as cuGetProcAddress wants them
#define CLIENT_FUNCTIONS(X)                                               \
  X(cuInit, "cuInit", 2000, 0)                                            \
  X(cuDeviceGet, "cuDeviceGet", 2000, 0)                                  \
  X(cuDeviceGetCount, "cuDeviceGetCount", 2000, 0)                        \
  X(cuDeviceTotalMem_v2, "cuDeviceTotalMem", 3020, 0)                     \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, 0)        \
  X(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, 0)  \
  X(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000, 0)      \
  X(cuCtxCreate_v2, "cuCtxCreate", 3020, 0)                               \
  X(cuCtxDestroy_v2, "cuCtxDestroy", 4000, 0)                             \
  X(cuCtxSetCurrent, "cuCtxSetCurrent", 4000, 0)                          \
  X(cuCtxSynchronize, "cuCtxSynchronize", 2000, 0)                        \
  X(cuCtxSetLimit, "cuCtxSetLimit", 3010, 0)                              \
  X(cuMemGetInfo_v2, "cuMemGetInfo", 3020, 0)                             \
  X(cuMemAlloc_v2, "cuMemAlloc", 3020, 0)                                 \
  X(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020, 0)                       \
  X(cuMemAllocManaged, "cuMemAllocManaged", 6000, 0)                      \
  X(cuMemFree_v2, "cuMemFree", 3020, 0)                                   \
  X(cuMemAllocAsync, "cuMemAllocAsync", 11020, 0)                         \
  X(cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020, 2)                    \
  X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, 0)         \
  X(cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync", 11020, 2)    \
  X(cuMemFreeAsync, "cuMemFreeAsync", 11020, 0)                           \
  X(cuStreamCreate, "cuStreamCreate", 2000, 0)                            \
  X(cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010, 0)            \
  X(cuStreamEndCapture, "cuStreamEndCapture", 10000, 0)                   \
  X(cuMemPoolCreate, "cuMemPoolCreate", 11020, 0)                         \
  X(cuMemPoolDestroy, "cuMemPoolDestroy", 11020, 0)                       \
  X(cuMemPoolSetAttribute, "cuMemPoolSetAttribute", 11020, 0)             \
  X(cuMemPoolTrimTo, "cuMemPoolTrimTo", 11020, 0)                         \
  X(cuDeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", 11020, 0)     \
  X(cuMemCreate, "cuMemCreate", 10020, 0)                                 \
  X(cuMemRelease, "cuMemRelease", 10020, 0)                               \
  X(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", 11000, 0) \
  X(cuMemAddressReserve, "cuMemAddressReserve", 10020, 0)                 \
  X(cuMemMap, "cuMemMap", 10020, 0)                                       \
  X(cuMemUnmap, "cuMemUnmap", 10020, 0)                                   \
  X(cuArrayCreate_v2, "cuArrayCreate", 3020, 0)                           \
  X(cuArray3DCreate_v2, "cuArray3DCreate", 3020, 0)                       \
  X(cuArrayDestroy, "cuArrayDestroy", 2000, 0)                            \
  X(cuMipmappedArrayCreate, "cuMipmappedArrayCreate", 5000, 0)            \
  X(cuMipmappedArrayDestroy, "cuMipmappedArrayDestroy", 5000, 0)

struct DriverFunctions {
#define CLIENT_FIELD(name, base, version, flags) decltype(&::name) name;
  CLIENT_FUNCTIONS(CLIENT_FIELD)
#undef CLIENT_FIELD
};

inline void* resolve(const std::string& mode, const char* name, const char* base, int version, cuuint64_t flags,
                     void* linked) {
  static void* handle = nullptr;
  if (mode == "linked") return linked;
  if (mode == "next") return dlsym(RTLD_NEXT, name);
  if (mode == "default") return dlsym(RTLD_DEFAULT, name);
  if (handle == nullptr) handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (mode == "dlsym") return dlsym(handle, name);
  void* found = nullptr;
  if (mode == "proc") {
    using Get = CUresult (*)(const char*, void**, int, cuuint64_t);
    const auto get = reinterpret_cast<Get>(dlsym(handle, "cuGetProcAddress"));
    if (get(base, &found, version, flags) != CUDA_SUCCESS) return nullptr;
  } else if (mode == "proc_v2") {
    using Get = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
    // As libcudart does it: one dlsym, then itself through itself.
    static Get get = nullptr;
    CUdriverProcAddressQueryResult status{};
    if (get == nullptr) {
      const auto first = reinterpret_cast<Get>(dlsym(handle, "cuGetProcAddress_v2"));
      if (first("cuGetProcAddress", reinterpret_cast<void**>(&get), 12000, 0, &status) != CUDA_SUCCESS) return nullptr;
    }
    if (get(base, &found, version, flags, &status) != CUDA_SUCCESS) return nullptr;
    if (status != CU_GET_PROC_ADDRESS_SUCCESS) return nullptr;
  }
  return found;
}

inline DriverFunctions reach(const std::string& mode) {
  DriverFunctions functions{};
#define CLIENT_RESOLVE(name, base, version, flags)                                                                \
  functions.name = reinterpret_cast<decltype(functions.name)>(                                                    \
      resolve(mode, #name, base, version, flags, mode == "linked" ? reinterpret_cast<void*>(&::name) : nullptr)); \
  if (functions.name == nullptr) {                                                                                \
    std::printf("missing=%s\n", #name);                                                                           \
    std::exit(3);                                                                                                 \
  }
  CLIENT_FUNCTIONS(CLIENT_RESOLVE)
#undef CLIENT_RESOLVE
  return functions;
}
