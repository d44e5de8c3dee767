// Virtual memory management: physical memory by handle, in every order of create, map, retain, release and unmap.
#include <cstring>
#include <thread>

#include "way.h"

namespace ways {
namespace {

CUmemAllocationProp placed(CUmemLocationType type, int id) {
  CUmemAllocationProp prop;
  std::memset(&prop, 0, sizeof(prop));
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = type;
  prop.location.id = id;
  return prop;
}

CUresult create(Value* out, size_t bytes, int device) {
  const CUmemAllocationProp prop = placed(CU_MEM_LOCATION_TYPE_DEVICE, device);
  return cuMemCreate(out, bytes, &prop, 0);
}

CUresult release(Value handle) { return cuMemRelease(handle); }

// Creates, reserves and maps. Leaves nothing behind where it fails.
CUresult create_mapped(CUmemGenericAllocationHandle* handle, CUdeviceptr* address) {
  CUresult result = create(handle, kBlock, 0);
  if (result != CUDA_SUCCESS) return result;
  result = cuMemAddressReserve(address, kBlock, 0, 0, 0);
  if (result == CUDA_SUCCESS) result = cuMemMap(*address, kBlock, 0, *handle, 0);
  if (result != CUDA_SUCCESS) cuMemRelease(*handle);
  return result;
}

CUresult unmap(CUdeviceptr address) {
  const CUresult result = cuMemUnmap(address, kBlock);
  return result != CUDA_SUCCESS ? result : cuMemAddressFree(address, kBlock);
}

Way kept(const std::string& name, size_t bytes, int device) {
  Way way;
  way.name = name;
  way.step_bytes = bytes;
  way.take = [bytes, device](Value* out) { return create(out, bytes, device); };
  way.give_back = release;
  return way;
}

Way mapped_then_released() {
  Way way;
  way.name = "cuMemCreate, mapped, then released";
  way.take = [](Value* out) {
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr address = 0;
    CUresult result = create_mapped(&handle, &address);
    if (result == CUDA_SUCCESS) result = cuMemRelease(handle);
    if (result == CUDA_SUCCESS) *out = address;
    return result;
  };
  way.give_back = unmap;
  return way;
}

// Unmapped, but still held by a handle that was got back from the mapping after the first was released.
Way retained() {
  Way way;
  way.name = "cuMemCreate, mapped, released, retained, unmapped";
  way.take = [](Value* out) {
    CUmemGenericAllocationHandle handle = 0, again = 0;
    CUdeviceptr address = 0;
    CUresult result = create_mapped(&handle, &address);
    if (result == CUDA_SUCCESS) result = cuMemRelease(handle);
    if (result == CUDA_SUCCESS) result = cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(address));
    if (result == CUDA_SUCCESS) result = unmap(address);
    if (result == CUDA_SUCCESS) *out = again;
    return result;
  };
  way.give_back = release;
  return way;
}

// Two ranges over one piece of memory: it is gone with the last.
Way mapped_twice() {
  Way way;
  way.name = "cuMemCreate, mapped twice, then released";
  way.take = [](Value* out) {
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr first = 0, second = 0;
    CUresult result = create_mapped(&handle, &first);
    if (result == CUDA_SUCCESS) result = cuMemAddressReserve(&second, kBlock, 0, 0, 0);
    if (result == CUDA_SUCCESS) result = cuMemMap(second, kBlock, 0, handle, 0);
    if (result == CUDA_SUCCESS) result = cuMemRelease(handle);
    if (result == CUDA_SUCCESS) result = unmap(first);
    if (result == CUDA_SUCCESS) *out = second;
    return result;
  };
  way.give_back = unmap;
  return way;
}

Way without_context() {
  Way way = kept("cuMemCreate, thread without a context", kBlock, 0);
  way.take = [](Value* out) {
    CUresult result = CUDA_SUCCESS;
    std::thread([&] { result = create(out, kBlock, 0); }).join();
    return result;
  };
  return way;
}

Way on_host() {
  Way way;
  way.name = "cuMemCreate (host memory)";
  way.refusal = Refusal::kNever;
  way.room_bytes = kBlock;
  way.most_takes = 8;
  way.optional = true;
  way.take = [](Value* out) {
    const CUmemAllocationProp prop = placed(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0);
    return cuMemCreate(out, kBlock, &prop, 0);
  };
  way.give_back = release;
  return way;
}

}  // namespace

void add_vmm_ways(Ways& ways) {
  ways.push_back(kept("cuMemCreate 2 MiB", 2 * kMib, 0));
  ways.push_back(kept("cuMemCreate 64 MiB", kBlock, 0));
  ways.push_back(kept("cuMemCreate 64 MiB, eight threads", kBlock, 0));
  ways.back().threads = 8;
  ways.push_back(kept("cuMemCreate on a second card", kBlock, 1));
  ways.back().optional = true;
  ways.back().begin = [] {  // NVML shows what a process holds only on cards where it has a context
    CUcontext second = nullptr;
    return cuDevicePrimaryCtxRetain(&second, 1);
  };
  ways.push_back(kept("cuMemCreate on a second card without a context there", kBlock, 1));
  ways.back().optional = true;
  ways.push_back(without_context());
  ways.push_back(mapped_then_released());
  ways.push_back(mapped_twice());
  ways.push_back(retained());
  ways.push_back(on_host());
}

}  // namespace ways
