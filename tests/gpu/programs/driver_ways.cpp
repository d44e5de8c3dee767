// The ways of driver_ways.h. Spellings that the header does not declare are looked up by dlsym, as old programs are
// linked.
#include "driver_ways.h"

#include <dlfcn.h>

#include <cstring>

namespace {

using Value = unsigned long long;
constexpr size_t kMib = size_t{1} << 20;
constexpr size_t kBlock = 64 * kMib;

template <typename Function>
Function* by_name(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

CUmemAllocationProp on_device_0() {
  CUmemAllocationProp prop;
  std::memset(&prop, 0, sizeof(prop));
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = 0;
  return prop;
}

// A pool that keeps all that is freed into it: memory parked there counts as much as memory in use.
CUmemoryPool keeping_pool() {
  static CUmemoryPool pool = [] {
    CUmemPoolProps props;
    std::memset(&props, 0, sizeof(props));
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemoryPool made = nullptr;
    cuuint64_t keep = ~cuuint64_t{0};
    if (cuMemPoolCreate(&made, &props) == CUDA_SUCCESS) {
      cuMemPoolSetAttribute(made, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
    }
    return made;
  }();
  return pool;
}

CUresult free_linear(Value value) { return cuMemFree_v2(value); }
CUresult free_async(Value value) { return cuMemFreeAsync(value, nullptr); }

CUresult free_into_pool_and_trim(Value value) {
  const CUresult freed = cuMemFreeAsync(value, nullptr);
  if (freed != CUDA_SUCCESS) return freed;
  const CUresult synchronized = cuStreamSynchronize(nullptr);
  return synchronized != CUDA_SUCCESS ? synchronized : cuMemPoolTrimTo(keeping_pool(), 0);
}

Way linear(const std::string& name, size_t bytes) {
  return {name, bytes, [bytes](Value* out) { return cuMemAlloc_v2(out, bytes); }, free_linear};
}

// The 32-bit spelling of CUDA 3.1, still exported: unsigned int sizes and pointers.
Way old_spelling() {
  using Allocate = CUresult(unsigned*, unsigned);
  using Free = CUresult(unsigned);
  return {"cuMemAlloc (first spelling)",
          kBlock,
          [](Value* out) {
            auto* allocate = by_name<Allocate>("cuMemAlloc");
            if (allocate == nullptr) return CUDA_ERROR_NOT_FOUND;
            auto narrow = static_cast<unsigned>(*out);
            const CUresult result = allocate(&narrow, static_cast<unsigned>(kBlock));
            *out = (*out & ~Value{0xffffffff}) | narrow;
            return result;
          },
          [](Value value) { return by_name<Free>("cuMemFree")(static_cast<unsigned>(value)); },
          true,
          true};
}

Way pitched() {
  return {"cuMemAllocPitch_v2", kBlock,
          [](Value* out) {
            size_t pitch = 0;
            return cuMemAllocPitch_v2(out, &pitch, 65536, kBlock / 65536, 4);
          },
          free_linear};
}

Way managed() {
  return {"cuMemAllocManaged", kBlock, [](Value* out) { return cuMemAllocManaged(out, kBlock, CU_MEM_ATTACH_GLOBAL); },
          free_linear};
}

Way async_way(const char* name) {
  using Allocate = CUresult(CUdeviceptr*, size_t, CUstream);
  return {name,
          kBlock,
          [name](Value* out) {
            auto* allocate = by_name<Allocate>(name);
            return allocate == nullptr ? CUDA_ERROR_NOT_FOUND : allocate(out, kBlock, nullptr);
          },
          free_async,
          false,
          true};
}

Way pool_way(const char* name) {
  using Allocate = CUresult(CUdeviceptr*, size_t, CUmemoryPool, CUstream);
  return {name,
          kBlock,
          [name](Value* out) {
            auto* allocate = by_name<Allocate>(name);
            return allocate == nullptr ? CUDA_ERROR_NOT_FOUND : allocate(out, kBlock, keeping_pool(), nullptr);
          },
          free_into_pool_and_trim,
          false,
          true};
}

Way vmm_unmapped() {
  return {"cuMemCreate", kBlock,
          [](Value* out) {
            const CUmemAllocationProp prop = on_device_0();
            return cuMemCreate(out, kBlock, &prop, 0);
          },
          [](Value handle) { return cuMemRelease(handle); }};
}

// The memory outlives its handle for as long as it is mapped.
Way vmm_mapped_then_released() {
  return {"cuMemCreate, mapped, then released", kBlock,
          [](Value* out) {
            const CUmemAllocationProp prop = on_device_0();
            CUmemGenericAllocationHandle handle = 0;
            CUresult result = cuMemCreate(&handle, kBlock, &prop, 0);
            if (result != CUDA_SUCCESS) return result;
            CUdeviceptr address = 0;
            result = cuMemAddressReserve(&address, kBlock, 0, 0, 0);
            if (result == CUDA_SUCCESS) result = cuMemMap(address, kBlock, 0, handle, 0);
            const CUresult released = cuMemRelease(handle);
            if (result == CUDA_SUCCESS) result = released;
            if (result == CUDA_SUCCESS) *out = address;
            return result;
          },
          [](Value address) {
            const CUresult result = cuMemUnmap(address, kBlock);
            return result != CUDA_SUCCESS ? result : cuMemAddressFree(address, kBlock);
          }};
}

CUresult free_array(Value value) { return cuArrayDestroy(reinterpret_cast<CUarray>(value)); }

Way array_2d() {
  return {"cuArrayCreate_v2", kBlock,
          [](Value* out) {
            const CUDA_ARRAY_DESCRIPTOR_v2 shape{4096, 4096, CU_AD_FORMAT_FLOAT, 1};
            return cuArrayCreate_v2(reinterpret_cast<CUarray*>(out), &shape);
          },
          free_array};
}

CUDA_ARRAY3D_DESCRIPTOR_v2 cube() {
  CUDA_ARRAY3D_DESCRIPTOR_v2 shape;
  std::memset(&shape, 0, sizeof(shape));
  shape.Width = shape.Height = shape.Depth = 256;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 1;
  return shape;
}

Way array_3d() {
  return {"cuArray3DCreate_v2", kBlock,
          [](Value* out) {
            const CUDA_ARRAY3D_DESCRIPTOR_v2 shape = cube();
            return cuArray3DCreate_v2(reinterpret_cast<CUarray*>(out), &shape);
          },
          free_array};
}

Way mipmapped() {
  return {"cuMipmappedArrayCreate", kBlock,
          [](Value* out) {
            const CUDA_ARRAY3D_DESCRIPTOR_v2 shape = cube();
            return cuMipmappedArrayCreate(reinterpret_cast<CUmipmappedArray*>(out), &shape, 8);
          },
          [](Value value) { return cuMipmappedArrayDestroy(reinterpret_cast<CUmipmappedArray>(value)); }};
}

}  // namespace

std::vector<Way> driver_ways() {
  return {linear("cuMemAlloc_v2", kBlock),
          linear("cuMemAlloc_v2 of 1 MiB + 1 B", kMib + 1),
          linear("cuMemAlloc_v2 of 512 KiB", kMib / 2),
          old_spelling(),
          pitched(),
          managed(),
          async_way("cuMemAllocAsync"),
          async_way("cuMemAllocAsync_ptsz"),
          pool_way("cuMemAllocFromPoolAsync"),
          pool_way("cuMemAllocFromPoolAsync_ptsz"),
          vmm_unmapped(),
          vmm_mapped_then_released(),
          array_2d(),
          array_3d(),
          mipmapped()};
}
