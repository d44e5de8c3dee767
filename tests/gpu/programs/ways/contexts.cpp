// What the driver takes for itself when it is asked for something else: contexts, green contexts, streams, and the
// limits of a context (stack, malloc heap, printf fifo).
#include <cstring>

#include "way.h"

namespace ways {
namespace {

Way second_contexts() {
  Way way;
  way.name = "cuCtxCreate";
  way.step_bytes = 512 * kMib;
  way.take = [](Value* out) {
    auto* context = reinterpret_cast<CUcontext>(*out);
    const CUresult result = call_by_name("cuCtxCreate_v2", &context, 0u, CUdevice{0});
    *out = reinterpret_cast<Value>(context);
    return result != CUDA_SUCCESS ? result : cuCtxSetCurrent(world().context);
  };
  way.give_back = [](Value value) {
    const CUresult result = call_by_name("cuCtxDestroy_v2", reinterpret_cast<CUcontext>(value));
    cuCtxSetCurrent(world().context);
    return result;
  };
  return way;
}

// A share of the processors with a context of its own, in what little room is left. How much it takes is not
// documented.
Way green_contexts() {
  Way way;
  way.name = "cuGreenCtxCreate";
  way.kept_by_driver = true;
  way.room_bytes = kBlock;
  way.most_takes = 48;
  way.refusal = Refusal::kMay;
  way.optional = true;
#if CUDA_VERSION >= 12040
  way.take = [](Value* out) {
    CUdevResource all, group;
    CUdevResourceDesc description = nullptr;
    CUgreenCtx made = nullptr;
    unsigned groups = 1;
    std::memset(&all, 0, sizeof(all));
    std::memset(&group, 0, sizeof(group));
    CUresult result = call_by_name("cuDeviceGetDevResource", CUdevice{0}, &all, CU_DEV_RESOURCE_TYPE_SM);
    if (result == CUDA_SUCCESS)
      result = call_by_name("cuDevSmResourceSplitByCount", &group, &groups, static_cast<const CUdevResource*>(&all),
                            static_cast<CUdevResource*>(nullptr), 0u, 8u);
    if (result == CUDA_SUCCESS) result = call_by_name("cuDevResourceGenerateDesc", &description, &group, 1u);
    if (result == CUDA_SUCCESS)
      result = call_by_name("cuGreenCtxCreate", &made, description, CUdevice{0}, unsigned{CU_GREEN_CTX_DEFAULT_STREAM});
    if (result == CUDA_SUCCESS) *out = reinterpret_cast<Value>(made);
    return result;
  };
  way.give_back = [](Value value) { return call_by_name("cuGreenCtxDestroy", reinterpret_cast<CUgreenCtx>(value)); };
#else
  way.take = [](Value*) { return CUDA_ERROR_NOT_SUPPORTED; };
#endif
  return way;
}

Way streams() {
  Way way;
  way.name = "cuStreamCreate";
  way.kept_by_driver = true;
  way.room_bytes = kBlock;
  way.step_bytes = 1;  // not known; measured: half a MiB
  way.most_takes = 1000;
  way.take = [](Value* out) { return cuStreamCreate(reinterpret_cast<CUstream*>(out), CU_STREAM_NON_BLOCKING); };
  way.give_back = [](Value value) { return call_by_name("cuStreamDestroy_v2", reinterpret_cast<CUstream>(value)); };
  return way;
}

// Each take raises the limit by one step, and what is given back is the limit that was there before the first.
Way raised_limit(const std::string& name, CUlimit limit, size_t step, size_t step_bytes, size_t most_takes = 0) {
  Way way;
  way.name = name;
  way.step_bytes = step_bytes;
  way.most_takes = most_takes;
  way.once_before = false;
  way.take = [limit, step](Value* out) {
    size_t before = 0, after = 0;
    CUresult result = cuCtxGetLimit(&before, limit);
    if (result != CUDA_SUCCESS) return result;
    result = cuCtxSetLimit(limit, before + step);
    if (cuCtxGetLimit(&after, limit) != CUDA_SUCCESS) return CUDA_ERROR_UNKNOWN;
    if (result == CUDA_SUCCESS) *out = before;
    // A refusal must leave the limit that was there.
    return result != CUDA_SUCCESS && after != before ? CUDA_ERROR_ILLEGAL_STATE : result;
  };
  way.give_back = [limit](Value before) { return cuCtxSetLimit(limit, before); };
  return way;
}

}  // namespace

void add_context_ways(Ways& ways) {
  // The driver keeps a stack for every thread that the card can hold at once: some 270,000 on a large one.
  constexpr size_t kThreads = 2048 * 132;
  ways.push_back(second_contexts());
  ways.push_back(green_contexts());
  ways.push_back(streams());
  ways.push_back(raised_limit("cuCtxSetLimit stack, 2 KiB steps", CU_LIMIT_STACK_SIZE, 2048, 2048 * kThreads, 64));
  ways.push_back(raised_limit("cuCtxSetLimit stack, 16 KiB at once", CU_LIMIT_STACK_SIZE, 16384, 16384 * kThreads, 8));
  ways.push_back(raised_limit("cuCtxSetLimit stack, 64 KiB at once", CU_LIMIT_STACK_SIZE, 65536, 65536 * kThreads, 2));
  ways.push_back(
      raised_limit("cuCtxSetLimit malloc heap, 8 GiB at once", CU_LIMIT_MALLOC_HEAP_SIZE, 8 * kGib, 8 * kGib));
  ways.push_back(raised_limit("cuCtxSetLimit malloc heap, 1 GiB steps", CU_LIMIT_MALLOC_HEAP_SIZE, kGib, kGib));
  ways.push_back(
      raised_limit("cuCtxSetLimit printf fifo, 8 GiB at once", CU_LIMIT_PRINTF_FIFO_SIZE, 8 * kGib, 8 * kGib));
}

}  // namespace ways
