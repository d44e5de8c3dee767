// Several processes on one fake machine: the card that they share, NVML's view of them, and memory handed over.
#include <dlfcn.h>
#include <signal.h>

#include <vector>

#include "tests/fake_cuda/fresh_process.h"

using namespace fake;

namespace {

// A child that runs `body`, says so by one byte, and then waits to be killed.
class Companion {
 public:
  template <class Body>
  explicit Companion(Body body) {
    int ready[2];
    if (::pipe(ready) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      body();
      const char result = testing::Test::HasFailure() ? 'x' : '.';
      std::fflush(nullptr);
      if (::write(ready[1], &result, 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char result = 'x';
    if (::read(ready[0], &result, 1) != 1) result = 'x';
    EXPECT_EQ(result, '.');
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Companion() { kill(); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

struct ProcessInfo {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};

struct NvmlFunctions {
  int (*init)() = nullptr;
  int (*by_index)(unsigned, void**) = nullptr;
  int (*processes)(void*, unsigned*, ProcessInfo*) = nullptr;
  NvmlFunctions() {
    void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW);
    EXPECT_NE(library, nullptr) << ::dlerror();
    init = reinterpret_cast<int (*)()>(::dlsym(library, "nvmlInit_v2"));
    by_index = reinterpret_cast<int (*)(unsigned, void**)>(::dlsym(library, "nvmlDeviceGetHandleByIndex_v2"));
    processes = reinterpret_cast<int (*)(void*, unsigned*, ProcessInfo*)>(
        ::dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3"));
  }
};

}  // namespace

TEST(Machine, ProcessesShareACardAndAKilledOneFreesItsShare) {
  EXPECT_TRUE(in_fresh_process([] {
    Companion other([] {
      CUdeviceptr pointer = 0;
      start();
      EXPECT_EQ(cuMemAlloc_v2(&pointer, 12 * kGiB), CUDA_SUCCESS);
    });
    CUdeviceptr pointer = 0;
    size_t free = 0, total = 0;
    start();
    EXPECT_EQ(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
    EXPECT_EQ(free, 16 * kGiB - 12 * kGiB - 2 * 543162368);
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 4 * kGiB), CUDA_ERROR_OUT_OF_MEMORY);
    const pid_t pid = other.pid();
    EXPECT_EQ(figures(0, pid).bytes, 12 * kGiB + 543162368);
    other.kill();
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 12 * kGiB), CUDA_SUCCESS);
    EXPECT_EQ(figures(0, pid).bytes, 0u);
    EXPECT_EQ(figures(0, pid).peak, 12 * kGiB + 543162368);  // still known after its death
  }));
}

TEST(Machine, NvmlListsTheLivingProcessesThatHoldMemory) {
  EXPECT_TRUE(in_fresh_process([] {
    const NvmlFunctions nvml;
    void* card = nullptr;
    unsigned count = 0;
    ProcessInfo infos[4];
    EXPECT_EQ(nvml.by_index(0, &card), 1);  // not initialised
    ASSERT_EQ(nvml.init(), 0);
    ASSERT_EQ(nvml.by_index(0, &card), 0);
    EXPECT_EQ(nvml.processes(card, &count, nullptr), 0);
    Companion other([] { start(); });
    start();
    EXPECT_EQ(nvml.processes(card, &count, nullptr), 7);  // not enough room
    EXPECT_EQ(count, 2u);
    EXPECT_EQ(nvml.processes(card, &count, infos), 0);
    ASSERT_EQ(count, 2u);
    for (unsigned i = 0; i < count; ++i) {
      EXPECT_TRUE(infos[i].pid == static_cast<unsigned>(::getpid()) ||
                  infos[i].pid == static_cast<unsigned>(other.pid()));
      EXPECT_EQ(infos[i].used, 543162368u);
    }
    other.kill();
    ::setenv("FAKE_NVML_NO_PROCESS_MEMORY", "1", 1);
    EXPECT_EQ(nvml.processes(card, &count, infos), 0);
    ASSERT_EQ(count, 1u);
    EXPECT_EQ(infos[0].used, ~0ull);
  }));
}

TEST(Machine, AnImporterOfIpcMemorySeesTheBytesAndPaysNothing) {
  EXPECT_TRUE(in_fresh_process([] {
    int to_importer[2];
    ASSERT_EQ(::pipe(to_importer), 0);
    Companion exporter([&] {
      CUdeviceptr pointer = 0;
      CUipcMemHandle handle{};
      start();
      EXPECT_EQ(cuMemAlloc_v2(&pointer, 3 << 20), CUDA_SUCCESS);
      EXPECT_EQ(cuMemsetD32_v2(pointer, 4242, 16), CUDA_SUCCESS);
      EXPECT_EQ(cuIpcGetMemHandle(&handle, pointer), CUDA_SUCCESS);
      EXPECT_EQ(::write(to_importer[1], &handle, sizeof(handle)), static_cast<ssize_t>(sizeof(handle)));
    });
    CUipcMemHandle handle{};
    CUdeviceptr pointer = 0;
    unsigned value = 0;
    ASSERT_EQ(::read(to_importer[0], &handle, sizeof(handle)), static_cast<ssize_t>(sizeof(handle)));
    start();
    EXPECT_EQ(cuIpcOpenMemHandle_v2(&pointer, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH_v2(&value, pointer, sizeof(value)), CUDA_SUCCESS);
    EXPECT_EQ(value, 4242u);
    EXPECT_EQ(bytes(), 543162368u);
    EXPECT_EQ(cuMemFree_v2(pointer), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuIpcCloseMemHandle(pointer), CUDA_SUCCESS);
  }));
}

TEST(Machine, TheOldDriverLacksWhatCameLater) {
  EXPECT_TRUE(in_fresh_process([] {
    void* const old = ::dlopen(FAKE_CUDA_OLD_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(old, nullptr) << ::dlerror();
    for (const char* name : {"cuGetProcAddress_v2", "cuMemAllocAsync", "cuMemPoolCreate", "cuLibraryLoadData"}) {
      EXPECT_EQ(::dlsym(old, name), nullptr) << name;
    }
    const auto get = reinterpret_cast<decltype(&cuGetProcAddress)>(::dlsym(old, "cuGetProcAddress"));
    ASSERT_NE(get, nullptr);
    void* function = nullptr;
    EXPECT_EQ(get("cuGetProcAddress", &function, 12000, 0), CUDA_SUCCESS);
    EXPECT_EQ(function, reinterpret_cast<void*>(get));
    EXPECT_EQ(get("cuMemAllocAsync", &function, 12000, 0), CUDA_ERROR_NOT_FOUND);
  }));
}

TEST(Machine, TwoRuntimesServeTheirOwnCallersAndRememberTheirErrors) {
  EXPECT_TRUE(in_fresh_process([] {
    for (const char* path :
         {FAKE_CUDA_RUNTIME_FOLDER "/libcudart.so.12", FAKE_CUDA_RUNTIME_FOLDER "/libcudart.so.13"}) {
      void* const runtime = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
      ASSERT_NE(runtime, nullptr) << ::dlerror();
      const auto allocate = reinterpret_cast<int (*)(void**, size_t)>(::dlsym(runtime, "cudaMalloc"));
      const auto release = reinterpret_cast<int (*)(void*)>(::dlsym(runtime, "cudaFree"));
      const auto last_error = reinterpret_cast<int (*)()>(::dlsym(runtime, "cudaGetLastError"));
      void* pointer = nullptr;
      EXPECT_EQ(allocate(&pointer, 3 << 20), 0);
      EXPECT_EQ(bytes(), 543162368u + 4 * kMiB);
      EXPECT_EQ(release(pointer), 0);
      EXPECT_EQ(allocate(&pointer, 64 * kGiB), 2);
      EXPECT_EQ(last_error(), 2);
      EXPECT_EQ(last_error(), 0);
      EXPECT_EQ(bytes(), 543162368u);
    }
  }));
}
