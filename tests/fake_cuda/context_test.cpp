// Contexts: what they take, what their end frees, and what the driver says without one.
#include "tests/fake_cuda/fresh_process.h"

using namespace fake;

TEST(Context, ThePrimaryOneIsTakenOnceAndItsEndFreesEverythingInIt) {
  EXPECT_TRUE(in_fresh_process([] {
    CUcontext again = nullptr;
    start();
    EXPECT_EQ(bytes(), 543162368u);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
    EXPECT_EQ(bytes(), 543162368u);
    CUdeviceptr pointer = 0;
    CUarray array = nullptr;
    CUmodule module = nullptr;
    CUstream stream = nullptr;
    const CUDA_ARRAY_DESCRIPTOR shape{1000, 1000, CU_AD_FORMAT_FLOAT, 1};
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 100), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 100 << 20), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAllocAsync(&pointer, 1, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAllocManaged(&pointer, 1, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    EXPECT_EQ(cuArrayCreate_v2(&array, &shape), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleLoadData(&module, "FAKE code=1000"), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    EXPECT_GT(bytes(), 543162368u);  // one user is left
    EXPECT_EQ(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
    EXPECT_EQ(bytes(), 0u);
    EXPECT_EQ(figures().managed, 0u);
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 1), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }));
}

TEST(Context, AnotherOneTakesAsMuchAgain) {
  EXPECT_TRUE(in_fresh_process([] {
    CUcontext context = nullptr, popped = nullptr;
    CUdeviceptr pointer = 0;
    start();
    EXPECT_EQ(cuCtxCreate_v2(&context, 0, 1), CUDA_SUCCESS);
    EXPECT_EQ(bytes(1), 543162368u);
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 3 << 20), CUDA_SUCCESS);
    EXPECT_EQ(bytes(1), 543162368u + 4 * kMiB);
    EXPECT_EQ(cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
    EXPECT_EQ(popped, context);
    EXPECT_EQ(cuMemFree_v2(pointer), CUDA_SUCCESS);  // from another device's context
    EXPECT_EQ(bytes(1), 543162368u);
    EXPECT_EQ(cuCtxDestroy_v2(context), CUDA_SUCCESS);
    EXPECT_EQ(bytes(1), 0u);
    EXPECT_EQ(bytes(0), 543162368u);
  }));
}

TEST(Context, OneThatDoesNotFitIsRefusedWhole) {
  EXPECT_TRUE(in_fresh_process({{"FAKE_CUDA_MEMORY", "543162367"}}, [] {
    CUcontext context = nullptr;
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(cuCtxCreate_v2(&context, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(context, nullptr);
    EXPECT_EQ(bytes(), 0u);
  }));
}

TEST(Context, WithoutInitOrContextCallsSaySo) {
  EXPECT_TRUE(in_fresh_process([] {
    CUdeviceptr pointer = 0;
    size_t total = 0;
    int version = 0;
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 1), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cuMemFree_v2(0), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cuDriverGetVersion(&version), CUDA_SUCCESS);
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 1), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuMemAllocAsync(&pointer, 1, nullptr), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuMemGetInfo_v2(&total, &total), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
    EXPECT_EQ(total, 16 * kGiB);
  }));
}

TEST(Context, AForkedChildOfAnInitialisedProcessGetsNotInitialised) {
  EXPECT_TRUE(in_fresh_process([] {
    start();
    const pid_t child = ::fork();
    if (child == 0) {
      CUdeviceptr pointer = 0;
      const bool refused =
          cuInit(0) == CUDA_ERROR_NOT_INITIALIZED && cuMemAlloc_v2(&pointer, 1) == CUDA_ERROR_NOT_INITIALIZED;
      ::_exit(refused ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(bytes(), 543162368u);
  }));
}

TEST(Context, VisibleDevicesAreOrdinalsOrUuids) {
  const auto count = [](const char* visible) {
    int devices = -1;
    ::setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    const CUresult result = cuInit(0);
    if (result != CUDA_SUCCESS) return -static_cast<int>(result);
    cuDeviceGetCount(&devices);
    return devices;
  };
  EXPECT_TRUE(in_fresh_process([&] { EXPECT_EQ(count("0,1"), 2); }));
  EXPECT_TRUE(in_fresh_process([&] { EXPECT_EQ(count(""), -CUDA_ERROR_NO_DEVICE); }));
  EXPECT_TRUE(in_fresh_process([&] { EXPECT_EQ(count("-1"), -CUDA_ERROR_NO_DEVICE); }));
  EXPECT_TRUE(in_fresh_process([&] { EXPECT_EQ(count("0,7,1"), 1); }));
  EXPECT_TRUE(in_fresh_process([&] {
    char name[32];
    EXPECT_EQ(count("GPU-f14e"), 1);
    EXPECT_EQ(cuDeviceGetName(name, sizeof(name), 0), CUDA_SUCCESS);
    EXPECT_STREQ(name, "Fake GPU 1");
    start();
    EXPECT_EQ(bytes(0), 0u);
    EXPECT_EQ(bytes(1), 543162368u);
  }));
}
