// Stream-ordered pools: how they grow, keep and give back.
#include "tests/fake_cuda/fresh_process.h"

using namespace fake;

namespace {

CUdeviceptr allocate(size_t size) {
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuMemAllocAsync(&pointer, size, nullptr), CUDA_SUCCESS);
  return pointer;
}

uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which) {
  cuuint64_t value = 0;
  EXPECT_EQ(cuMemPoolGetAttribute(pool, which, &value), CUDA_SUCCESS);
  return value;
}

CUmemoryPool default_pool() {
  CUmemoryPool pool = nullptr;
  EXPECT_EQ(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  return pool;
}

void keep_everything(CUmemoryPool pool) {
  cuuint64_t threshold = UINT64_MAX;
  EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold), CUDA_SUCCESS);
}

}  // namespace

TEST(Pool, GrowsInStepsOfThirtyTwoMebibytes) {
  for (const auto& [asked, taken] :
       {std::pair{uint64_t{1}, 32 * kMiB}, {32 * kMiB, 32 * kMiB}, {40 * kMiB, 64 * kMiB}, {100 * kMiB, 128 * kMiB}}) {
    EXPECT_TRUE(in_fresh_process([asked = asked, taken = taken] {
      start();
      const uint64_t before = bytes();
      allocate(asked);
      EXPECT_EQ(bytes() - before, taken);
      EXPECT_EQ(attribute(default_pool(), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), taken);
    }));
  }
}

TEST(Pool, GivesFreeChunksBackAtTheNextSynchronise) {
  EXPECT_TRUE(in_fresh_process([] {
    start();
    const uint64_t before = bytes();
    const CUdeviceptr first = allocate(100 * kMiB);
    EXPECT_EQ(cuMemFreeAsync(first, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(bytes() - before, 128 * kMiB);
    EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
    EXPECT_EQ(bytes(), before);
    EXPECT_EQ(attribute(default_pool(), CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 128 * kMiB);
  }));
}

TEST(Pool, KeepsWhatTheThresholdAllowsUntilItIsTrimmed) {
  EXPECT_TRUE(in_fresh_process([] {
    start();
    const uint64_t before = bytes();
    keep_everything(default_pool());
    const CUdeviceptr low = allocate(1), high = allocate(64 * kMiB);
    EXPECT_EQ(bytes() - before, 96 * kMiB);
    EXPECT_EQ(cuMemFree_v2(high), CUDA_SUCCESS);  // cuMemFree returns it to its pool
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(bytes() - before, 96 * kMiB);
    EXPECT_EQ(allocate(64 * kMiB), high);  // reused, nothing new taken
    EXPECT_EQ(bytes() - before, 96 * kMiB);
    EXPECT_EQ(cuMemFreeAsync(high, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuMemPoolTrimTo(default_pool(), 0), CUDA_SUCCESS);
    EXPECT_EQ(bytes() - before, 32 * kMiB);  // the first chunk is in use
    EXPECT_EQ(cuMemFreeAsync(low, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(attribute(default_pool(), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
    EXPECT_EQ(attribute(default_pool(), CU_MEMPOOL_ATTR_USED_MEM_HIGH), 64 * kMiB + 512);
  }));
}

TEST(Pool, GivesBackChunksInTheMiddleAndTakesThemAgain) {
  EXPECT_TRUE(in_fresh_process([] {
    start();
    const uint64_t before = bytes();
    allocate(32 * kMiB);
    const CUdeviceptr middle = allocate(32 * kMiB);
    allocate(32 * kMiB);
    EXPECT_EQ(cuMemFreeAsync(middle, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(bytes() - before, 64 * kMiB);
    EXPECT_EQ(allocate(1), middle);
    EXPECT_EQ(cuMemsetD8_v2(middle, 1, 1), CUDA_SUCCESS);
    EXPECT_EQ(bytes() - before, 96 * kMiB);
  }));
}

TEST(Pool, ManyPairsOfOneSizeTakeNoMoreThanOne) {
  EXPECT_TRUE(in_fresh_process([] {
    start();
    const uint64_t before = bytes();
    for (int i = 0; i < 1000; ++i) {
      EXPECT_EQ(cuMemFreeAsync(allocate(20 * kMiB), nullptr), CUDA_SUCCESS);
      EXPECT_EQ(bytes() - before, 32 * kMiB);
    }
  }));
}

TEST(Pool, AZeroByteRequestIsGrantedNothing) {
  EXPECT_TRUE(in_fresh_process([] {
    start();
    const uint64_t before = bytes();
    EXPECT_EQ(allocate(0), 0u);
    EXPECT_EQ(bytes(), before);
  }));
}

TEST(Pool, AUserPoolNeedsNoContextAndDiesWithItsLastBlock) {
  EXPECT_TRUE(in_fresh_process([] {
    CUstream stream = nullptr;
    start(1);
    EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
    const uint64_t before = bytes(1);
    CUmemoryPool pool = nullptr;
    CUmemPoolProps props{};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    props.location.id = 1;
    EXPECT_EQ(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
    keep_everything(pool);
    CUdeviceptr a = 0, b = 0;
    EXPECT_EQ(cuMemAllocFromPoolAsync(&a, 1, pool, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAllocFromPoolAsync(&b, 64 * kMiB, pool, stream), CUDA_SUCCESS);
    EXPECT_EQ(bytes(1) - before, 96 * kMiB);
    EXPECT_EQ(cuMemFreeAsync(b, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
    EXPECT_EQ(bytes(1) - before, 32 * kMiB);
    EXPECT_EQ(cuMemAllocFromPoolAsync(&b, 1, pool, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFreeAsync(a, stream), CUDA_SUCCESS);
    EXPECT_EQ(bytes(1), before);
  }));
}

TEST(Pool, AnAsynchronousFreeTakesLinearMemoryToo) {
  EXPECT_TRUE(in_fresh_process([] {
    start();
    const uint64_t before = bytes();
    CUdeviceptr pointer = 0;
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 3 << 20), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFreeAsync(pointer, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(bytes(), before);
    EXPECT_EQ(cuMemFreeAsync(pointer, nullptr), CUDA_ERROR_INVALID_VALUE);
  }));
}
