// Arrays, modules, limits, graphs, failures on demand and the addresses of entry points.
#include <dlfcn.h>

#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "tests/fake_cuda/fresh_process.h"

using namespace fake;

TEST(Array, TakesItsBlockLinearSize) {
  EXPECT_TRUE(in_fresh_process([] {
    start();
    const uint64_t before = bytes();
    CUarray array = nullptr, small = nullptr, sparse = nullptr;
    const CUDA_ARRAY_DESCRIPTOR shape{1000, 1000, CU_AD_FORMAT_FLOAT, 1};
    EXPECT_EQ(cuArrayCreate_v2(&array, &shape), CUDA_SUCCESS);
    EXPECT_EQ(bytes() - before, 4 * kMiB);
    const CUDA_ARRAY_DESCRIPTOR tiny{16, 16, CU_AD_FORMAT_FLOAT, 1};
    EXPECT_EQ(cuArrayCreate_v2(&small, &tiny), CUDA_SUCCESS);
    EXPECT_EQ(bytes() - before, 6 * kMiB);
    const CUDA_ARRAY3D_DESCRIPTOR deferred{1000, 1000, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_DEFERRED_MAPPING};
    EXPECT_EQ(cuArray3DCreate_v2(&sparse, &deferred), CUDA_SUCCESS);
    EXPECT_EQ(bytes() - before, 6 * kMiB);
    for (const CUarray made : {array, small, sparse}) EXPECT_EQ(cuArrayDestroy(made), CUDA_SUCCESS);
    EXPECT_EQ(bytes(), before);
    EXPECT_EQ(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
  }));
}

TEST(Array, AMipmappedOneTakesTheSumOfItsLevels) {
  EXPECT_TRUE(in_fresh_process([] {
    start();
    const uint64_t before = bytes();
    CUmipmappedArray array = nullptr;
    CUarray level = nullptr;
    const CUDA_ARRAY3D_DESCRIPTOR shape{1024, 1024, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    EXPECT_EQ(cuMipmappedArrayCreate(&array, &shape, 2), CUDA_SUCCESS);
    EXPECT_EQ(bytes() - before, 6 * kMiB);  // 4 MiB + 1 MiB
    EXPECT_EQ(cuMipmappedArrayGetLevel(&level, array, 1), CUDA_SUCCESS);
    EXPECT_EQ(cuArrayDestroy(level), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuMipmappedArrayDestroy(array), CUDA_SUCCESS);
    EXPECT_EQ(bytes(), before);
  }));
}

TEST(Module, ALibraryTakesCodeAtFirstUseAndLocalMemoryAtTheFirstLaunch) {
  EXPECT_TRUE(in_fresh_process([] {
    start();
    const uint64_t before = bytes();
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    EXPECT_EQ(cuLibraryLoadData(&library, "FAKE code=3000000 local=32768 kernels=a,b", nullptr, nullptr, 0, nullptr,
                                nullptr, 0),
              CUDA_SUCCESS);
    EXPECT_EQ(cuLibraryGetKernel(&kernel, library, "b"), CUDA_SUCCESS);
    EXPECT_EQ(bytes(), before);
    const uint64_t local = whole_blocks(32768ull * 2048 * 132);
    const auto launch = [&] {
      return cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
    };
    EXPECT_EQ(launch(), CUDA_SUCCESS);
    EXPECT_EQ(bytes() - before, 4 * kMiB + local);
    EXPECT_EQ(launch(), CUDA_SUCCESS);
    EXPECT_EQ(bytes() - before, 4 * kMiB + local);
    EXPECT_EQ(cuLibraryUnload(library), CUDA_SUCCESS);
    EXPECT_EQ(bytes() - before, local);  // stays with the context
  }));
}

TEST(Limits, TheStackLimitTakesItsMemoryAtOnceOrFails) {
  EXPECT_TRUE(in_fresh_process([] {
    start();
    const uint64_t before = bytes();
    size_t size = 0;
    EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 16384), CUDA_SUCCESS);
    EXPECT_EQ(bytes() - before, whole_blocks(15360ull * 2048 * 132));
    EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1 << 20), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(cuCtxGetLimit(&size, CU_LIMIT_STACK_SIZE), CUDA_SUCCESS);
    EXPECT_EQ(size, 16384u);
    EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024), CUDA_SUCCESS);
    EXPECT_EQ(bytes(), before);
  }));
}

TEST(Graph, CapturedAllocationsAreReservedAtTheFirstLaunchAndKeptUntilTrimmed) {
  EXPECT_TRUE(in_fresh_process([] {
    start();
    CUstream stream = nullptr;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CUdeviceptr a = 0, b = 0;
    EXPECT_EQ(cuStreamCreate(&stream, 1), CUDA_SUCCESS);
    const uint64_t before = bytes();
    EXPECT_EQ(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAllocAsync(&a, 40 << 20, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFreeAsync(a, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAllocAsync(&b, 1, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    EXPECT_EQ(bytes(), before);
    EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
    EXPECT_EQ(bytes() - before, 64 * kMiB);
    EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);  // b is still allocated
    EXPECT_EQ(cuMemFree_v2(b), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
    EXPECT_EQ(bytes() - before, 64 * kMiB);
    EXPECT_EQ(cuMemFreeAsync(b, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
    EXPECT_EQ(bytes() - before, 64 * kMiB);
    EXPECT_EQ(cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
    EXPECT_EQ(bytes(), before);
  }));
}

TEST(ProcAddress, GivesTheExportedSpellingOfTheAskedAge) {
  EXPECT_TRUE(in_fresh_process([] {
    void* function = nullptr;
    CUdriverProcAddressQueryResult status{};
    const auto get = [&](const char* name, int version, cuuint64_t flags) {
      return cuGetProcAddress_v2(name, &function, version, flags, &status);
    };
    void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
    const struct {
      const char* name;
      int version;
      cuuint64_t flags;
      const char* spelling;
    } cases[] = {{"cuMemAlloc", 2000, 0, "cuMemAlloc"},
                 {"cuMemAlloc", 3010, 0, "cuMemAlloc"},
                 {"cuMemAlloc", 3020, 0, "cuMemAlloc_v2"},
                 {"cuMemAlloc", 13000, 2, "cuMemAlloc_v2"},
                 {"cuMemAllocAsync", 12000, 1, "cuMemAllocAsync"},
                 {"cuMemAllocAsync", 12000, 2, "cuMemAllocAsync_ptsz"},
                 {"cuMemcpyHtoD", 12000, 2, "cuMemcpyHtoD_v2_ptds"},
                 {"cuMemcpyHtoD", 6000, 2, "cuMemcpyHtoD_v2"},
                 {"cuCtxCreate", 12040, 0, "cuCtxCreate_v3"},
                 {"cuCtxCreate", 13000, 0, "cuCtxCreate_v4"},
                 {"cuGetProcAddress", 11030, 1, "cuGetProcAddress"},
                 {"cuGetProcAddress", 12000, 1, "cuGetProcAddress_v2"}};
    for (const auto& expected : cases) {
      EXPECT_EQ(get(expected.name, expected.version, expected.flags), CUDA_SUCCESS) << expected.spelling;
      EXPECT_EQ(function, ::dlsym(library, expected.spelling)) << expected.spelling;
      EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
    }
    EXPECT_EQ(get("cuNoSuchThing", 13000, 0), CUDA_ERROR_NOT_FOUND);
    EXPECT_EQ(function, nullptr);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT_EQ(get("cuMemAllocAsync", 11010, 0), CUDA_ERROR_NOT_FOUND);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  }));
}

TEST(Failures, ComeOnDemandWithoutEffectAndAreLogged) {
  const std::string log = "/tmp/fake-cuda-log." + std::to_string(::getpid());
  ::unlink(log.c_str());
  EXPECT_TRUE(in_fresh_process(
      {{"FAKE_CUDA_FAIL", "cuMemAlloc_v2:2=2,cuMemFree_v2:*=700"}, {"FAKE_CUDA_LOG", log.c_str()}}, [] {
        start();
        CUdeviceptr pointer = 0;
        EXPECT_EQ(cuMemAlloc_v2(&pointer, 1), CUDA_SUCCESS);
        EXPECT_EQ(cuMemFree_v2(pointer), CUDA_ERROR_ILLEGAL_ADDRESS);
        const uint64_t before = bytes();
        EXPECT_EQ(cuMemAlloc_v2(&pointer, 3 << 20), CUDA_ERROR_OUT_OF_MEMORY);
        EXPECT_EQ(bytes(), before);
        EXPECT_EQ(cuMemAlloc_v2(&pointer, 3 << 20), CUDA_SUCCESS);
      }));
  std::stringstream text;
  text << std::ifstream(log).rdbuf();
  EXPECT_NE(text.str().find("cuMemAlloc_v2 0\ncuMemFree_v2 700\ncuMemAlloc_v2 2\ncuMemAlloc_v2 0\n"), std::string::npos)
      << text.str();
  ::unlink(log.c_str());
}

TEST(Threads, AllocateAndFreeTogetherAndLeaveNothingBehind) {
  EXPECT_TRUE(in_fresh_process([] {
    CUcontext const context = start();
    const uint64_t before = bytes();
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 8; ++t) {
      threads.emplace_back([context, t] {
        EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
        for (unsigned i = 0; i < 300; ++i) {
          CUdeviceptr a = 0, b = 0;
          EXPECT_EQ(cuMemAlloc_v2(&a, 1 + (i * 7919 + t) % (3 << 20)), CUDA_SUCCESS);
          EXPECT_EQ(cuMemAllocAsync(&b, 1 + (i * 104729 + t) % (9 << 20), nullptr), CUDA_SUCCESS);
          EXPECT_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
          EXPECT_EQ(cuMemFreeAsync(b, nullptr), CUDA_SUCCESS);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(bytes(), before);
  }));
}
