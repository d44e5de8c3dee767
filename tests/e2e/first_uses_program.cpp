// A program that looks kernels up again and again, as libraries do before each launch, unloads and loads anew, and uses
// several contexts and threads. Knows nothing of gpucap. Says "READY" after each step and waits for a line on stdin;
// first_uses_test.cpp looks then.
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/driver_functions.h"
#include "tests/e2e/steps.h"

namespace {

constexpr const char* kImage = "FAKE code=4194304 local=0 kernels=a,b,c";
constexpr const char* kHungry = "FAKE code=4194304 local=1024 kernels=a";  // takes local memory when it is launched
constexpr const char* kTooLarge = "FAKE code=8589934592 local=0 kernels=a";
CUcontext primary = nullptr;

CUlibrary load(const char* image) {
  CUlibrary library = nullptr;
  must(cuLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0), "cuLibraryLoadData");
  return library;
}

CUresult use(CUlibrary library, const char* name) {
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  must(cuLibraryGetKernel(&kernel, library, name), "cuLibraryGetKernel");
  return cuKernelGetFunction(&function, kernel);
}

// What a program does between two launches, so that a mark left behind would make it look.
void allocate_a_little() {
  CUdeviceptr pointer = 0;
  must(cuMemAlloc_v2(&pointer, 512), "cuMemAlloc");
  must(cuMemFree_v2(pointer), "cuMemFree");
}

void use_and_unload_for_a_while() {
  must(cuCtxSetCurrent(primary), "cuCtxSetCurrent");
  for (int i = 0; i < 200; ++i) {
    CUlibrary library = load(kImage);
    for (int k = 0; k < 5; ++k) must(use(library, "b"), "cuKernelGetFunction");
    if (i != 199) must(cuLibraryUnload(library), "cuLibraryUnload");
  }
}

}  // namespace

int main() {
  must(cuInit(0), "cuInit");
  must(cuDevicePrimaryCtxRetain(&primary, 0), "cuDevicePrimaryCtxRetain");
  must(cuCtxSetCurrent(primary), "cuCtxSetCurrent");
  CUlibrary library = load(kImage);
  for (const char* name : {"a", "b", "c"}) must(use(library, name), name);
  allocate_a_little();
  pause_here();

  for (int i = 0; i < 1000; ++i) {
    CUcontext again = nullptr;  // some libraries hold the context for the length of a call
    must(cuDevicePrimaryCtxRetain(&again, 0), "cuDevicePrimaryCtxRetain");
    must(cuDevicePrimaryCtxRelease_v2(0), "cuDevicePrimaryCtxRelease");
    must(use(library, i % 2 == 0 ? "a" : "b"), "cuKernelGetFunction");
    allocate_a_little();
  }
  pause_here();

  CUmodule module = nullptr;
  CUfunction function = nullptr;
  must(cuModuleLoadData(&module, kImage), "cuModuleLoadData");
  must(cuModuleGetFunction(&function, module, "a"), "cuModuleGetFunction");
  allocate_a_little();
  pause_here();

  for (int i = 0; i < 1000; ++i) {
    must(cuModuleGetFunction(&function, module, "a"), "cuModuleGetFunction");
    must(cuFuncLoad(function) == CUDA_ERROR_NOT_SUPPORTED ? CUDA_SUCCESS : cuFuncLoad(function), "cuFuncLoad");
    allocate_a_little();
  }
  pause_here();

  for (int i = 0; i < 20; ++i) {  // the same handles come back, and with them what they take
    must(cuLibraryUnload(library), "cuLibraryUnload");
    library = load(kImage);
  }
  must(use(library, "a"), "cuKernelGetFunction");
  pause_here();

  // Looked up, launched, looked up, launched: what the first launch took.
  usleep(30000);  // figures are old by then, and the synchronise right after the launches finds them looked at just now
  CUlibrary hungry = load(kHungry);
  for (int i = 0; i < 4; ++i) {
    CUkernel kernel = nullptr;
    must(cuLibraryGetKernel(&kernel, hungry, "a"), "cuLibraryGetKernel");
    must(cuKernelGetFunction(&function, kernel), "cuKernelGetFunction");
    must(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), "cuLaunchKernel");
  }
  must(cuCtxSynchronize(), "cuCtxSynchronize");
  pause_here();

  CUcontext second = nullptr;
  must(cuCtxCreate_v2(&second, 0, 0), "cuCtxCreate");
  must(use(library, "a"), "cuKernelGetFunction");  // loads it there, too
  pause_here();
  must(cuCtxDestroy_v2(second), "cuCtxDestroy");

  // The primary context goes and comes back under the same handle, for which the kernel is as good as before.
  const CUcontext before = primary;
  for (const bool by_reset : {false, true}) {
    must(by_reset ? cuDevicePrimaryCtxReset_v2(0) : cuDevicePrimaryCtxRelease_v2(0), "the end of the context");
    must(cuDevicePrimaryCtxRetain(&primary, 0), "cuDevicePrimaryCtxRetain");
    must(primary == before ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, "the same handle");
    must(cuCtxSetCurrent(primary), "cuCtxSetCurrent");
    for (int i = 0; i < 3; ++i) must(use(library, "a"), "cuKernelGetFunction");
    pause_here();
  }

  CUlibrary large = load(kTooLarge);
  const CUresult result = use(large, "a");
  must(result == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, "a library over the cap");
  must(cuLibraryUnload(large), "cuLibraryUnload");
  must(cuCtxSynchronize(), "cuCtxSynchronize");
  pause_here();

  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(use_and_unload_for_a_while);
  for (std::thread& thread : threads) thread.join();
  must(cuCtxSynchronize(), "cuCtxSynchronize");
  allocate_a_little();
  pause_here();
  return 0;
}
