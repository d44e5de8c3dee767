// A program that asks NVML, as monitoring tools and frameworks do: nvml_client WAY STEP..., one line of output a step.
// WAY is how it reaches NVML: linked (where it was built so), dlsym, default, or nothing (not at all). A HANDLE is
// index:N, uuid:TEXT or pci:TEXT. CUDA is brought in by the steps that use it only.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>

#include "shim/driver/cuda.h"
#include "shim/loader/elf_symbols.h"
#include "tests/e2e/nvml_functions.h"

namespace {

NvmlFunctions nvml;

void* driver_function(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  void* function = driver == nullptr ? nullptr : dlsym(driver, name);
  if (function == nullptr) std::exit(3);
  return function;
}
#define DRIVER(name) reinterpret_cast<decltype(&::name)>(driver_function(#name))

int find_handle(const std::string& text, void** handle) {
  const std::string kind = text.substr(0, text.find(':')), value = text.substr(text.find(':') + 1);
  if (kind == "index") return nvml.nvmlDeviceGetHandleByIndex_v2(static_cast<unsigned>(std::stoul(value)), handle);
  if (kind == "uuid") return nvml.nvmlDeviceGetHandleByUUID(value.c_str(), handle);
  return nvml.nvmlDeviceGetHandleByPciBusId_v2(value.c_str(), handle);
}

NvmlMemoryV2 fresh_v2() {
  NvmlMemoryV2 memory{};
  memory.version = kNvmlMemoryV2;
  return memory;
}

// "HANDLE=result total free used | result version total reserved free used"
void show(const std::string& text) {
  void* handle = nullptr;
  NvmlMemory one{};
  NvmlMemoryV2 two = fresh_v2();
  const int found = find_handle(text, &handle);
  const int first = found != 0 ? found : nvml.nvmlDeviceGetMemoryInfo(handle, &one);
  const int second = found != 0 ? found : nvml.nvmlDeviceGetMemoryInfo_v2(handle, &two);
  std::printf("%s=%d %llu %llu %llu | %d %x %llu %llu %llu %llu\n", text.c_str(), first, one.total, one.free, one.used,
              second, two.version, two.total, two.reserved, two.free, two.used);
}

void list_processes(const std::string& text) {
  void* handle = nullptr;
  NvmlProcess list[64];
  unsigned count = 64;
  const int found = find_handle(text, &handle);
  std::printf("processes=%d", found != 0 ? found : nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle, &count, list));
  for (unsigned i = 0; i < count; ++i)
    std::printf(" %d:%llu", list[i].pid == static_cast<unsigned>(getpid()), list[i].used);
  std::printf("\n");
}

// What NVML says to odd calls, and that it leaves the record as it was.
void odd_calls(const std::string& text) {
  void* handle = nullptr;
  const int found = find_handle(text, &handle);
  int unknown = 0;
  NvmlMemory one;
  NvmlMemoryV2 two;
  memset(&one, 0x5e, sizeof(one));
  memset(&two, 0x5e, sizeof(two));
  std::printf("odd=%d %d %d %d %d %d %d", found, nvml.nvmlDeviceGetMemoryInfo(handle, nullptr),
              nvml.nvmlDeviceGetMemoryInfo_v2(handle, nullptr), nvml.nvmlDeviceGetMemoryInfo(nullptr, &one),
              nvml.nvmlDeviceGetMemoryInfo(&unknown, &one), nvml.nvmlDeviceGetMemoryInfo_v2(&unknown, &two),
              nvml.nvmlDeviceGetMemoryInfo_v2(handle, &two));
  std::printf(" %llx %x %llx %llx\n", one.total, two.version, two.total, two.reserved);
}

// A context and so many MiB on every device; "cudaN=free total used" as the driver says.
void use_cuda(size_t mib) {
  int count = 0;
  std::printf("cuInit=%d\n", static_cast<int>(DRIVER(cuInit)(0)));
  DRIVER(cuDeviceGetCount)(&count);
  for (int i = 0; i < count; ++i) {
    CUcontext context = nullptr;
    CUdeviceptr pointer = 0;
    size_t free_bytes = 0, total_bytes = 0;
    const int retained = static_cast<int>(DRIVER(cuDevicePrimaryCtxRetain)(&context, i));
    DRIVER(cuCtxSetCurrent)(context);
    const int taken = mib == 0 ? 0 : static_cast<int>(DRIVER(cuMemAlloc_v2)(&pointer, mib << 20));
    DRIVER(cuMemGetInfo_v2)(&free_bytes, &total_bytes);
    std::printf("cuda%d=%d %d %zu %zu\n", i, retained, taken, free_bytes, total_bytes);
  }
}

void take_managed(size_t mib) {
  CUdeviceptr pointer = 0;
  std::printf("managed=%d\n", static_cast<int>(DRIVER(cuMemAllocManaged)(&pointer, mib << 20, CU_MEM_ATTACH_GLOBAL)));
}

// Takes memory without the library's knowledge, as the driver itself does, and waits until that must be seen.
void take_behind_its_back(size_t mib) {
  const char* const home = "libcuda.so";
  CUdeviceptr pointer = 0;
  const auto real =
      reinterpret_cast<decltype(&::cuMemAlloc_v2)>(gpucap::loader::find_in_loaded_object("cuMemAlloc_v2", &home, 1));
  std::printf("behind=%d\n", real == nullptr ? -1 : static_cast<int>(real(&pointer, mib << 20)));
  usleep(30'000);
}

void look_around() {
  dlerror();
  void* found = dlsym(RTLD_DEFAULT, "nvmlDeviceGetMemoryInfo");
  const char* error = dlerror();
  std::printf("lookup=%d %s\n", found != nullptr, error == nullptr ? "" : error);
  std::ifstream maps("/proc/self/maps");
  const std::string text((std::istreambuf_iterator<char>(maps)), {});
  std::printf("loaded=cuda:%d nvml:%d\n", text.find("libcuda.so") != std::string::npos,
              text.find("libnvidia-ml.so") != std::string::npos);
}

void wait_here() {
  std::printf("READY\n");
  std::fflush(stdout);
  std::string line;
  std::getline(std::cin, line);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  nvml = reach_nvml(argv[1]);
  for (int i = 2; i < argc; ++i) {
    const std::string step = argv[i];
    const auto next = [&] { return std::string(i + 1 < argc ? argv[++i] : ""); };
    if (step == "init")
      std::printf("init=%d\n", nvml.nvmlInit_v2());
    else if (step == "shutdown")
      std::printf("shutdown=%d\n", nvml.nvmlShutdown());
    else if (step == "show")
      show(next());
    else if (step == "processes")
      list_processes(next());
    else if (step == "odd")
      odd_calls(next());
    else if (step == "cuda")
      use_cuda(std::stoul(next()));
    else if (step == "cuda-init")
      std::printf("cuInit=%d\n", static_cast<int>(DRIVER(cuInit)(0)));
    else if (step == "managed")
      take_managed(std::stoul(next()));
    else if (step == "behind")
      take_behind_its_back(std::stoul(next()));
    else if (step == "look")
      look_around();
    else if (step == "wait")
      wait_here();
    else if (step == "fork") {
      std::fflush(stdout);
      int status = 0;
      const pid_t child = fork();
      if (child != 0) return waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : 4;
    } else {
      return 2;
    }
  }
  std::fflush(stdout);
  return 0;
}
