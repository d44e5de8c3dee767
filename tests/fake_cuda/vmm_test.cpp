// Virtual memory management: how long physical memory lives, and who pays for it.
#include "tests/fake_cuda/fresh_process.h"

using namespace fake;

namespace {

CUmemAllocationProp on(CUmemLocationType type, int id) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = type;
  prop.location.id = id;
  return prop;
}

CUdeviceptr reserve(size_t size) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAddressReserve(&address, size, 0, 0, 0), CUDA_SUCCESS);
  return address;
}

}  // namespace

TEST(Vmm, TakesItsExactSizeOnTheDeviceOfItsLocationWithoutAContext) {
  EXPECT_TRUE(in_fresh_process([] {
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp device = on(CU_MEM_LOCATION_TYPE_DEVICE, 1);
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemCreate(&handle, 1 << 20, &device, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemCreate(&handle, 64 * kGiB, &device, 0), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(handle, 0u);
    EXPECT_EQ(cuMemCreate(&handle, 6 << 20, &device, 0), CUDA_SUCCESS);
    EXPECT_EQ(bytes(0), 0u);
    EXPECT_EQ(bytes(1), 6 * kMiB);
    EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    EXPECT_EQ(bytes(1), 0u);
    EXPECT_EQ(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    const CUmemAllocationProp host = on(CU_MEM_LOCATION_TYPE_HOST, 0);
    EXPECT_EQ(cuMemCreate(&handle, 6 << 20, &host, 0), CUDA_SUCCESS);
    EXPECT_EQ(bytes(0) + bytes(1), 0u);
  }));
}

TEST(Vmm, LivesUntilReleasedAndUnmapped) {
  EXPECT_TRUE(in_fresh_process([] {
    CUmemGenericAllocationHandle handle = 0, retained = 0;
    const CUmemAllocationProp prop = on(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemCreate(&handle, 4 << 20, &prop, 0), CUDA_SUCCESS);
    const CUdeviceptr address = reserve(8 << 20);
    EXPECT_EQ(cuMemMap(address, 4 << 20, 0, handle, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemMap(address + (4 << 20), 4 << 20, 0, handle, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemMap(address + (2 << 20), 2 << 20, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    EXPECT_EQ(bytes(), 4 * kMiB);
    *reinterpret_cast<int*>(address) = 42;  // both mappings show the same memory
    EXPECT_EQ(*reinterpret_cast<int*>(address + (4 << 20)), 42);
    EXPECT_EQ(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(address + 5)), CUDA_SUCCESS);
    EXPECT_EQ(retained, handle);
    EXPECT_EQ(cuMemAddressFree(address, 8 << 20), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemUnmap(address, 6 << 20), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemUnmap(address, 8 << 20), CUDA_SUCCESS);  // both at once
    EXPECT_EQ(cuMemUnmap(address, 8 << 20), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(bytes(), 4 * kMiB);
    EXPECT_EQ(cuMemRelease(retained), CUDA_SUCCESS);
    EXPECT_EQ(bytes(), 0u);
    EXPECT_EQ(cuMemAddressFree(address, 8 << 20), CUDA_SUCCESS);
  }));
}

TEST(Vmm, AnImportedHandleIsAnotherOneOnTheSameMemory) {
  EXPECT_TRUE(in_fresh_process([] {
    CUmemGenericAllocationHandle handle = 0, imported = 0;
    CUmemAllocationProp prop = on(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    int fd = -1;
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemCreate(&handle, 4 << 20, &prop, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), CUDA_SUCCESS);
    void* const os_handle = reinterpret_cast<void*>(static_cast<intptr_t>(fd));
    EXPECT_EQ(cuMemImportFromShareableHandle(&imported, os_handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
              CUDA_SUCCESS);
    EXPECT_NE(imported, handle);
    EXPECT_EQ(bytes(), 4 * kMiB);
    EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    EXPECT_EQ(bytes(), 4 * kMiB);
    EXPECT_EQ(cuMemRelease(imported), CUDA_SUCCESS);
    EXPECT_EQ(bytes(), 0u);
  }));
}

TEST(Vmm, AnImporterInAnotherProcessPaysNothingAndSeesTheBytes) {
  EXPECT_TRUE(in_fresh_process([] {
    int pipe_to_child[2];
    ASSERT_EQ(::pipe(pipe_to_child), 0);
    CUmemAllocationProp prop = on(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    const pid_t importer = ::fork();  // before either of the two has initialised
    if (importer == 0) {
      char path[64];
      int theirs[2] = {-1, -1};
      ASSERT_EQ(::read(pipe_to_child[0], theirs, sizeof(theirs)), static_cast<ssize_t>(sizeof(theirs)));
      std::snprintf(path, sizeof(path), "/proc/%d/fd/%d", theirs[0], theirs[1]);
      std::FILE* const file = std::fopen(path, "r+");
      ASSERT_NE(file, nullptr);
      CUmemGenericAllocationHandle imported = 0;
      EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
      EXPECT_EQ(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(intptr_t{::fileno(file)}),
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                CUDA_SUCCESS);
      const CUdeviceptr address = reserve(4 << 20);
      EXPECT_EQ(cuMemMap(address, 4 << 20, 0, imported, 0), CUDA_SUCCESS);
      EXPECT_EQ(*reinterpret_cast<int*>(address), 42);
      EXPECT_EQ(bytes(), 0u);
      std::fflush(nullptr);
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    CUmemGenericAllocationHandle handle = 0;
    int message[2] = {::getpid(), -1};
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemCreate(&handle, 4 << 20, &prop, 0), CUDA_SUCCESS);
    const CUdeviceptr address = reserve(4 << 20);
    EXPECT_EQ(cuMemMap(address, 4 << 20, 0, handle, 0), CUDA_SUCCESS);
    *reinterpret_cast<int*>(address) = 42;
    EXPECT_EQ(cuMemExportToShareableHandle(&message[1], handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
              CUDA_SUCCESS);
    ASSERT_EQ(::write(pipe_to_child[1], message, sizeof(message)), static_cast<ssize_t>(sizeof(message)));
    int status = -1;
    ::waitpid(importer, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(bytes(), 4 * kMiB);
  }));
}
