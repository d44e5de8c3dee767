// Stream-ordered memory: from the device's default pool, from a pool made its current one, from pools of one's own, in
// both spellings; and memory that was freed into a pool which keeps it.
#include <cstring>
#include <vector>

#include "way.h"

namespace ways {
namespace {

CUmemoryPool make_pool(int device, cuuint64_t threshold) {
  CUmemPoolProps props;
  std::memset(&props, 0, sizeof(props));
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  props.location.id = device;
  CUmemoryPool pool = nullptr;
  if (cuMemPoolCreate(&pool, &props) == CUDA_SUCCESS) {
    cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
  }
  return pool;
}

constexpr cuuint64_t kKeepAll = ~cuuint64_t{0};

// Of this process: each process tries one way.
CUmemoryPool the_pool = nullptr;
CUstream the_stream = nullptr;

CUresult use_default_pool(cuuint64_t threshold) {
  const CUresult result = cuDeviceGetDefaultMemPool(&the_pool, 0);
  return result != CUDA_SUCCESS ? result
                                : cuMemPoolSetAttribute(the_pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
}

CUresult use_own_pool(int device) {
  the_pool = make_pool(device, kKeepAll);
  return the_pool == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult synchronize_and_trim() {
  const CUresult result = synchronize();
  return result != CUDA_SUCCESS ? result : cuMemPoolTrimTo(the_pool, 0);
}

CUresult free_async(Value value) { return cuMemFreeAsync(value, the_stream); }

Way async_way(const std::string& name, const char* spelling, cuuint64_t threshold) {
  Way way;
  way.name = name;
  way.begin = [threshold] { return use_default_pool(threshold); };
  way.take = [spelling](Value* out) { return call_by_name(spelling, out, kBlock, the_stream); };
  way.give_back = free_async;
  way.end = synchronize_and_trim;
  return way;
}

Way on_created_stream(Way way) {
  way.begin = [begin = way.begin] {
    const CUresult result = cuStreamCreate(&the_stream, CU_STREAM_NON_BLOCKING);
    return result != CUDA_SUCCESS ? result : begin();
  };
  return way;
}

Way from_device_set_pool() {
  Way way = async_way("cuMemAllocAsync, pool set by cuDeviceSetMemPool", "cuMemAllocAsync", 0);
  way.begin = [] {
    const CUresult result = use_own_pool(0);
    return result != CUDA_SUCCESS ? result : cuDeviceSetMemPool(0, the_pool);
  };
  return way;
}

Way from_pool(const std::string& name, const char* spelling, int device) {
  Way way;
  way.name = name;
  way.begin = [device] { return use_own_pool(device); };
  way.take = [spelling](Value* out) { return call_by_name(spelling, out, kBlock, the_pool, the_stream); };
  way.give_back = free_async;
  way.end = synchronize_and_trim;
  return way;
}

// Three quarters of the cap lie unused in a pool that keeps all; then as much is asked for elsewhere.
Way linear_after_parking() {
  Way way;
  way.name = "cuMemAlloc_v2 while a pool keeps freed memory";
  way.least_bytes = most_of_the_cap();  // what is kept without use is given back, and nothing refused for its sake
  way.once_before = false;
  way.begin = [] { return use_own_pool(0); };
  way.take = [](Value* out) {
    static bool parked = false;
    if (!parked) {
      parked = true;
      CUdeviceptr all = 0;
      CUresult result = cuMemAllocFromPoolAsync(&all, most_of_the_cap(), the_pool, nullptr);
      if (result == CUDA_SUCCESS) result = cuMemFreeAsync(all, nullptr);
      if (result == CUDA_SUCCESS) result = synchronize();
      if (result != CUDA_SUCCESS) return result;
    }
    return cuMemAlloc_v2(out, kBlock);
  };
  way.give_back = free_linear;
  way.end = synchronize_and_trim;
  return way;
}

// For a block that finds no gap the driver moves free memory of the pool to other addresses; when the old ones are used
// again, the pool grows. That happens before the first piece, and what is left of the cap is then taken elsewhere.
std::vector<CUdeviceptr> moved_blocks;

CUresult move_free_memory() {
  constexpr size_t kStep = 32 * kMib;
  const auto take = [](size_t bytes) {
    CUdeviceptr block = 0;
    const CUresult result = cuMemAllocAsync(&block, bytes, nullptr);
    if (result == CUDA_SUCCESS) moved_blocks.push_back(block);
    return result;
  };
  CUresult result = CUDA_SUCCESS;
  for (int i = 0; i < 6 && result == CUDA_SUCCESS; ++i) result = take(kStep);
  for (int i = 0; i < 3 && result == CUDA_SUCCESS; ++i) {
    result = cuMemFreeAsync(moved_blocks[static_cast<size_t>(i)], nullptr);  // of what is left: each other one
    moved_blocks.erase(moved_blocks.begin() + i);
  }
  if (result == CUDA_SUCCESS) result = take(3 * kStep);
  for (int i = 0; i < 3 && result == CUDA_SUCCESS; ++i) result = take(kStep);
  return result;
}

Way where_free_memory_moves() {
  Way way;
  way.name = "cuMemAlloc_v2 after a pool's free memory moved";
  way.step_bytes = 2 * kMib;
  way.room_bytes = 322 * kMib;
  way.least_bytes = 2 * kMib;
  way.once_before = false;
  way.begin = [] { return use_default_pool(kKeepAll); };
  way.take = [](Value* out) {
    if (moved_blocks.empty()) {
      const CUresult result = move_free_memory();
      if (result != CUDA_SUCCESS) return result;
    }
    return cuMemAlloc_v2(out, 2 * kMib);
  };
  way.give_back = free_linear;
  way.end = [] {
    for (const CUdeviceptr block : moved_blocks) cuMemFreeAsync(block, nullptr);
    return synchronize_and_trim();
  };
  return way;
}

// A pool a take, each left with a GiB that nobody uses.
Way parked_in_many_pools() {
  Way way;
  way.name = "memory parked in many pools";
  way.step_bytes = kGib;
  way.refusal = Refusal::kMay;
  way.take = [](Value* out) {
    CUmemoryPool pool = make_pool(0, kKeepAll);
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr memory = 0;
    CUresult result = cuMemAllocFromPoolAsync(&memory, kGib, pool, nullptr);
    if (result == CUDA_SUCCESS) result = cuMemFreeAsync(memory, nullptr);
    if (result == CUDA_SUCCESS) result = synchronize();
    if (result == CUDA_SUCCESS) {
      *out = reinterpret_cast<Value>(pool);
    } else {
      cuMemPoolDestroy(pool);
    }
    return result;
  };
  way.give_back = [](Value value) { return cuMemPoolDestroy(reinterpret_cast<CUmemoryPool>(value)); };
  way.end = synchronize;
  return way;
}

}  // namespace

void add_pool_ways(Ways& ways) {
  ways.push_back(async_way("cuMemAllocAsync, threshold 0", "cuMemAllocAsync", 0));
  ways.push_back(async_way("cuMemAllocAsync, threshold max", "cuMemAllocAsync", kKeepAll));
  ways.push_back(on_created_stream(async_way("cuMemAllocAsync, created stream", "cuMemAllocAsync", kKeepAll)));
  ways.push_back(async_way("cuMemAllocAsync_ptsz", "cuMemAllocAsync_ptsz", 0));
  ways.push_back(async_way("cuMemAllocAsync, eight threads", "cuMemAllocAsync", kKeepAll));
  ways.back().threads = 8;
  ways.push_back(from_device_set_pool());
  ways.push_back(from_pool("cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync", 0));
  ways.push_back(from_pool("cuMemAllocFromPoolAsync_ptsz", "cuMemAllocFromPoolAsync_ptsz", 0));
  ways.push_back(from_pool("cuMemAllocFromPoolAsync, a second card's pool", "cuMemAllocFromPoolAsync", 1));
  ways.back().optional = true;  // there may be one card only
  ways.back().begin = [begin = ways.back().begin] {
    CUcontext second = nullptr;  // NVML shows what a process holds only on cards where it has a context
    const CUresult result = cuDevicePrimaryCtxRetain(&second, 1);
    return result != CUDA_SUCCESS || !begin ? result : begin();
  };
  ways.push_back(linear_after_parking());
  ways.push_back(where_free_memory_moves());
  ways.push_back(parked_in_many_pools());
}

}  // namespace ways
