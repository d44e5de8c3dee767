// What linear memory takes and how its calls fail.
#include <vector>

#include "tests/fake_cuda/fresh_process.h"

using namespace fake;

namespace {

CUdeviceptr allocate(size_t size) {
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuMemAlloc_v2(&pointer, size), CUDA_SUCCESS);
  return pointer;
}

}  // namespace

TEST(Linear, SmallRequestsShareTwoMebibyteBlocksAndGiveThemBackWhenEmpty) {
  EXPECT_TRUE(in_fresh_process([] {
    start();
    const uint64_t before = bytes();
    std::vector<CUdeviceptr> pointers;
    for (int i = 0; i < 8; ++i) pointers.push_back(allocate(512));
    EXPECT_EQ(bytes() - before, 2 * kMiB);
    pointers.push_back(allocate(1 * kMiB));  // mixed sizes share as well
    EXPECT_EQ(bytes() - before, 2 * kMiB);
    pointers.push_back(allocate(1 * kMiB));  // does not fit beside them
    EXPECT_EQ(bytes() - before, 4 * kMiB);
    for (const CUdeviceptr pointer : pointers) EXPECT_EQ(cuMemFree_v2(pointer), CUDA_SUCCESS);
    EXPECT_EQ(bytes(), before);
  }));
}

TEST(Linear, AHundredThousandSmallRequestsTakeFiftyMebibytes) {
  EXPECT_TRUE(in_fresh_process([] {
    start();
    const uint64_t before = bytes();
    for (int i = 0; i < 100000; ++i) allocate(512);
    EXPECT_EQ(bytes() - before, 50 * kMiB);
  }));
}

TEST(Linear, LargerRequestsAreRoundedUpToTwoMebibytes) {
  EXPECT_TRUE(in_fresh_process([] {
    start();
    const uint64_t before = bytes();
    const CUdeviceptr pointer = allocate(1 * kMiB + 1);
    EXPECT_EQ(pointer % kBlockBytes, 0u);
    EXPECT_EQ(bytes() - before, 2 * kMiB);
    allocate(5 * kMiB);
    EXPECT_EQ(bytes() - before, 8 * kMiB);
  }));
}

TEST(Linear, PitchedMemoryTakesItsRoundedRows) {
  EXPECT_TRUE(in_fresh_process([] {
    start();
    const uint64_t before = bytes();
    CUdeviceptr pointer = 0;
    size_t pitch = 0;
    EXPECT_EQ(cuMemAllocPitch_v2(&pointer, &pitch, 513, 4096, 4), CUDA_SUCCESS);
    EXPECT_EQ(pitch, 1024u);
    EXPECT_EQ(bytes() - before, 4 * kMiB);
  }));
}

TEST(Linear, ARefusalLeavesThePointerAlone) {
  EXPECT_TRUE(in_fresh_process([] {
    start();
    const uint64_t before = bytes();
    CUdeviceptr pointer = 0x77;
    size_t pitch = 0;
    for (const size_t size : {size_t{16} << 30, ~size_t{0}, ~size_t{0} - (1 << 21), size_t{1} << 63}) {
      EXPECT_EQ(cuMemAlloc_v2(&pointer, size), CUDA_ERROR_OUT_OF_MEMORY) << size;
      EXPECT_EQ(cuMemAllocPitch_v2(&pointer, &pitch, size, size, 4), CUDA_ERROR_OUT_OF_MEMORY) << size;
      EXPECT_EQ(cuMemAllocAsync(&pointer, size, nullptr), CUDA_ERROR_OUT_OF_MEMORY) << size;
    }
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAlloc_v2(nullptr, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(pointer, 0x77u);
    EXPECT_EQ(bytes(), before);
    EXPECT_EQ(figures().peak, before);  // a refused request never shows
  }));
}

TEST(Linear, FreeKnowsOnlyTheFirstByteOfAnAllocation) {
  EXPECT_TRUE(in_fresh_process([] {
    start();
    const CUdeviceptr pointer = allocate(3 * kMiB);
    EXPECT_EQ(cuMemFree_v2(0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree_v2(pointer + 512), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFree_v2(0x1000), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFree_v2(pointer), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree_v2(pointer), CUDA_ERROR_INVALID_VALUE);
  }));
}

TEST(Linear, TheOldestSpellingsAnswerInThirtyTwoBits) {
  EXPECT_TRUE(in_fresh_process([] {
    start();
    CUdeviceptr_v1 small = 0, large = 0;
    unsigned free = 0, total = 0;
    EXPECT_EQ(cuMemAlloc(&small, 100), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAlloc(&large, 3 << 20), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD8(large, 0x5a, 3 << 20), CUDA_SUCCESS);
    unsigned char last = 0;
    EXPECT_EQ(cuMemcpyDtoH(&last, large + (3 << 20) - 1, 1), CUDA_SUCCESS);
    EXPECT_EQ(last, 0x5a);
    EXPECT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
    EXPECT_EQ(total, UINT32_MAX);  // 16 GiB do not fit
    EXPECT_EQ(cuMemFree(small), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(large), CUDA_SUCCESS);
  }));
}

TEST(Linear, CopiesMoveBytesAndRefuseWhatIsNotThere) {
  EXPECT_TRUE(in_fresh_process([] {
    start();
    const CUdeviceptr a = allocate(kMiB), b = allocate(kMiB);
    const char sent[] = "some bytes";
    char received[sizeof(sent)] = {};
    EXPECT_EQ(cuMemcpyHtoD_v2(a + 7, sent, sizeof(sent)), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoDAsync_v2(b, a + 7, sizeof(sent), nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH_v2_ptds(received, b, sizeof(received)), CUDA_SUCCESS);
    EXPECT_STREQ(received, sent);
    EXPECT_EQ(cuMemFree_v2(b), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH_v2(received, b, sizeof(received)), CUDA_ERROR_INVALID_VALUE);
  }));
}

TEST(Linear, ManagedMemoryStandsApart) {
  EXPECT_TRUE(in_fresh_process([] {
    start();
    const uint64_t before = bytes();
    CUdeviceptr pointer = 0;
    unsigned managed = 0;
    EXPECT_EQ(cuMemAllocManaged(&pointer, 3 * kMiB, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    EXPECT_EQ(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer), CUDA_SUCCESS);
    EXPECT_EQ(managed, 1u);
    EXPECT_EQ(bytes(), before);
    EXPECT_EQ(figures().managed, 4 * kMiB);
    EXPECT_EQ(cuMemFree_v2(pointer), CUDA_SUCCESS);
    EXPECT_EQ(figures().managed, 0u);
  }));
}
