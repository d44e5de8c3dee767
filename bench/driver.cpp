// See driver.h.
#include "bench/driver.h"

#include <dlfcn.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>

namespace gpucap::bench {
namespace {

constexpr char kPtx[] =
    ".version 6.3\n.target sm_75\n.address_size 64\n"
    ".visible .entry nothing()\n{\n  ret;\n}\n";
constexpr char kFakeImage[] = "FAKE code=4096 kernels=nothing";

Driver look_up() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "driver_bench: %s\n", dlerror());
    std::exit(3);
  }
  Driver found{};
#define GPUCAP_BENCH_LOOK_UP(name)                                            \
  found.name = reinterpret_cast<decltype(found.name)>(dlsym(library, #name)); \
  if (found.name == nullptr) {                                                \
    std::fprintf(stderr, "driver_bench: this driver has no %s\n", #name);     \
    std::exit(3);                                                             \
  }
  GPUCAP_BENCH_FUNCTIONS(GPUCAP_BENCH_LOOK_UP)
#undef GPUCAP_BENCH_LOOK_UP
  return found;
}

}  // namespace

const Driver& driver() {
  static const Driver found = look_up();
  return found;
}

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "driver_bench: %s answered %d\n", what, static_cast<int>(result));
  std::exit(3);
}

CUcontext start_driver() {
  check(driver().cuInit(0), "cuInit");
  CUdevice device = 0;
  check(driver().cuDeviceGet(&device, 0), "cuDeviceGet");
  CUcontext context = nullptr;
  check(driver().cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(driver().cuCtxSetCurrent(context), "cuCtxSetCurrent");
  return context;
}

CUmodule load_empty_kernel(CUfunction* kernel) {
  CUmodule module = nullptr;
  if (driver().cuModuleLoadData(&module, kPtx) != CUDA_SUCCESS)
    check(driver().cuModuleLoadData(&module, kFakeImage), "cuModuleLoadData");
  check(driver().cuModuleGetFunction(kernel, module, "nothing"), "cuModuleGetFunction");
  return module;
}

void start_nvml() {
  struct Process {
    unsigned int pid;
    unsigned long long used_bytes;
    unsigned int instance, compute_instance;
  };
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  const auto init = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
  const auto handle = reinterpret_cast<int (*)(unsigned int, void**)>(dlsym(library, "nvmlDeviceGetHandleByIndex_v2"));
  const auto list = reinterpret_cast<int (*)(void*, unsigned int*, Process*)>(
      dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3"));
  void* device = nullptr;
  if (init == nullptr || handle == nullptr || list == nullptr || init() != 0 || handle(0, &device) != 0) return;
  Process processes[64];
  unsigned int count = 64;
  list(device, &count, processes);
}

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace gpucap::bench
