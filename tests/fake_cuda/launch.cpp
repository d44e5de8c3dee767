// Kernel launches, which do nothing but take what a first launch takes, and the limits of a context.
#include "tests/fake_cuda/graph.h"
#include "tests/fake_cuda/module.h"
#include "tests/fake_cuda/stream.h"

namespace fake {
namespace {

CUresult launch(Driver& driver, CUfunction function, CUstream handle, bool per_thread) {
  Stream* const stream = find_stream(driver, handle, per_thread);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture == nullptr) return prepare_launch(driver, function);
  capture_other(*stream->capture, CU_GRAPH_NODE_TYPE_KERNEL, function);
  return CUDA_SUCCESS;
}

CUresult set_stack(Driver& driver, Context* context, uint64_t bytes) {
  const uint64_t above = bytes > kDefaultStackBytes ? bytes - kDefaultStackBytes : 0;
  const uint64_t charge = whole_blocks(saturating_product(above, kThreadsOnDevice));
  if (charge >= kAbsurdBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  if (charge > context->stack_charged) {
    if (!driver.take(context->device, charge - context->stack_charged)) return CUDA_ERROR_OUT_OF_MEMORY;
  } else {
    driver.give(context->device, context->stack_charged - charge);
  }
  context->stack_charged = charge;
  context->stack_bytes = bytes;
  return CUDA_SUCCESS;
}

// What the driver starts with; 0 for what it does not know.
uint64_t default_of(CUlimit limit) {
  switch (limit) {
    case CU_LIMIT_PRINTF_FIFO_SIZE:
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      return 8 * kMiB;
    case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
      return 2;
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
      return 2048;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
      return 64;
    default:
      return 0;
  }
}

}  // namespace
}  // namespace fake

using namespace fake;

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return enter("cuCtxSetLimit", Need::kContext, [&](Driver& d) {
    if (limit == CU_LIMIT_STACK_SIZE) return set_stack(d, current_context(), value);
    if (default_of(limit) == 0) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    current_context()->limits[limit] = value;
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  return enter("cuCtxGetLimit", Need::kContext, [&](Driver&) {
    const Context& context = *current_context();
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto found = context.limits.find(limit);
    const uint64_t known = found != context.limits.end() ? found->second : default_of(limit);
    if (limit != CU_LIMIT_STACK_SIZE && known == 0) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = limit == CU_LIMIT_STACK_SIZE ? context.stack_bytes : known;
    return CUDA_SUCCESS;
  });
}

#define FAKE_LAUNCH(name, parameters, function, stream)                                                        \
  CUresult name parameters {                                                                                   \
    return enter(#name, Need::kContext, [&](Driver& d) { return launch(d, function, stream, false); });        \
  }                                                                                                            \
  CUresult name##_ptsz parameters {                                                                            \
    return enter(#name "_ptsz", Need::kContext, [&](Driver& d) { return launch(d, function, stream, true); }); \
  }

FAKE_LAUNCH(cuLaunchKernel,
            (CUfunction f, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
             unsigned int, CUstream stream, void**, void**),
            f, stream)
FAKE_LAUNCH(cuLaunchCooperativeKernel,
            (CUfunction f, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
             unsigned int, CUstream stream, void**),
            f, stream)
FAKE_LAUNCH(cuLaunchKernelEx, (const CUlaunchConfig* config, CUfunction f, void**, void**), f, config->hStream)
