// The exported functions of contexts: creation in every spelling, the per-thread stack, primary contexts.
#include "tests/fake_cuda/context.h"
#include "tests/fake_cuda/pool.h"

namespace fake {
namespace {

CUresult create(Driver& driver, CUcontext* out, unsigned flags, CUdevice dev) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (driver.device(dev) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  Context* const context = make_context(driver, dev, flags);
  if (context == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  push_current(context);
  *out = as_handle(context);
  return CUDA_SUCCESS;
}

CUresult destroy(Driver& driver, CUcontext ctx) {
  Context* const context = as_context(ctx);
  if (driver.contexts.count(context) == 0 || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  end_context(driver, context);
  if (current_context() == context) pop_current();
  return CUDA_SUCCESS;
}

CUresult pop(CUcontext* out) {
  Context* const context = pop_current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (out != nullptr) *out = as_handle(context);
  return CUDA_SUCCESS;
}

CUresult push(Driver& driver, CUcontext ctx) {
  if (driver.contexts.count(as_context(ctx)) == 0) return CUDA_ERROR_INVALID_CONTEXT;
  return push_current(as_context(ctx)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult release_primary(Driver& driver, CUdevice dev) {
  Device* const device = driver.device(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (device->primary_count == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--device->primary_count == 0) end_context(driver, device->primary.get());
  return CUDA_SUCCESS;
}

CUresult reset_primary(Driver& driver, CUdevice dev) {
  Device* const device = driver.device(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (device->primary_count == 0) return CUDA_SUCCESS;
  device->primary_count = 0;
  end_context(driver, device->primary.get());
  return CUDA_SUCCESS;
}

CUresult set_primary_flags(Driver& driver, CUdevice dev, unsigned flags) {
  Device* const device = driver.device(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  device->primary_flags = flags;
  return CUDA_SUCCESS;
}

CUresult retain_primary(Driver& driver, CUcontext* out, CUdevice dev) {
  Device* const device = driver.device(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device->primary_count == 0) {
    if (device->primary == nullptr) {
      device->primary = std::make_unique<Context>();
      device->primary->device = dev;
      device->primary->primary = true;
    }
    device->primary->flags = device->primary_flags;
    if (!activate(driver, device->primary.get())) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  ++device->primary_count;
  *out = as_handle(device->primary.get());
  return CUDA_SUCCESS;
}

// The current context, or the one named if there is one.
CUresult device_of(Driver& driver, CUdevice* out, CUcontext ctx) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* const context = ctx == nullptr ? current_context() : as_context(ctx);
  if (driver.contexts.count(context) == 0) return CUDA_ERROR_INVALID_CONTEXT;
  *out = context->device;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace fake

using namespace fake;

CUresult cuCtxCreate(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return enter("cuCtxCreate", Need::kInitialised, [&](Driver& d) { return create(d, pctx, flags, dev); });
}
CUresult cuCtxCreate_v2(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return enter("cuCtxCreate_v2", Need::kInitialised, [&](Driver& d) { return create(d, pctx, flags, dev); });
}
CUresult cuCtxCreate_v3(CUcontext* pctx, CUexecAffinityParam*, int, unsigned int flags, CUdevice dev) {
  return enter("cuCtxCreate_v3", Need::kInitialised, [&](Driver& d) { return create(d, pctx, flags, dev); });
}
CUresult cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams*, unsigned int flags, CUdevice dev) {
  return enter("cuCtxCreate_v4", Need::kInitialised, [&](Driver& d) { return create(d, pctx, flags, dev); });
}
CUresult cuCtxDestroy(CUcontext ctx) {
  return enter("cuCtxDestroy", Need::kInitialised, [&](Driver& d) { return destroy(d, ctx); });
}
CUresult cuCtxDestroy_v2(CUcontext ctx) {
  return enter("cuCtxDestroy_v2", Need::kInitialised, [&](Driver& d) { return destroy(d, ctx); });
}
CUresult cuCtxAttach(CUcontext* pctx, unsigned int flags) {
  return enter("cuCtxAttach", Need::kContext, [&](Driver&) {
    if (pctx == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    ++current_context()->usage;
    *pctx = as_handle(current_context());
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxDetach(CUcontext ctx) {
  return enter("cuCtxDetach", Need::kContext, [&](Driver& d) {
    if (as_context(ctx) != current_context()) return CUDA_ERROR_INVALID_CONTEXT;
    return --current_context()->usage == 0 ? destroy(d, ctx) : CUDA_SUCCESS;
  });
}
CUresult cuCtxPopCurrent(CUcontext* pctx) {
  return enter("cuCtxPopCurrent", Need::kInitialised, [&](Driver&) { return pop(pctx); });
}
CUresult cuCtxPopCurrent_v2(CUcontext* pctx) {
  return enter("cuCtxPopCurrent_v2", Need::kInitialised, [&](Driver&) { return pop(pctx); });
}
CUresult cuCtxPushCurrent(CUcontext ctx) {
  return enter("cuCtxPushCurrent", Need::kInitialised, [&](Driver& d) { return push(d, ctx); });
}
CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
  return enter("cuCtxPushCurrent_v2", Need::kInitialised, [&](Driver& d) { return push(d, ctx); });
}
CUresult cuCtxSetCurrent(CUcontext ctx) {
  return enter("cuCtxSetCurrent", Need::kInitialised, [&](Driver& d) {
    if (ctx != nullptr && d.contexts.count(as_context(ctx)) == 0) return CUDA_ERROR_INVALID_CONTEXT;
    set_current(as_context(ctx));
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxGetCurrent(CUcontext* pctx) {
  return enter("cuCtxGetCurrent", Need::kInitialised, [&](Driver&) {
    if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pctx = as_handle(current_context());
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxGetDevice(CUdevice* device) {
  return enter("cuCtxGetDevice", Need::kContext, [&](Driver& d) { return device_of(d, device, nullptr); });
}
CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext ctx) {
  return enter("cuCtxGetDevice_v2", Need::kInitialised, [&](Driver& d) { return device_of(d, device, ctx); });
}
CUresult cuCtxGetFlags(unsigned int* flags) {
  return enter("cuCtxGetFlags", Need::kContext, [&](Driver&) {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = current_context()->flags;
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxGetId(CUcontext ctx, unsigned long long* id) {
  return enter("cuCtxGetId", Need::kInitialised, [&](Driver& d) {
    Context* const context = ctx == nullptr ? current_context() : as_context(ctx);
    if (d.contexts.count(context) == 0) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *id = context->id;
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int* version) {
  return enter("cuCtxGetApiVersion", Need::kInitialised, [&](Driver& d) {
    Context* const context = ctx == nullptr ? current_context() : as_context(ctx);
    if (d.contexts.count(context) == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = 3020;
    return CUDA_SUCCESS;
  });
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
  return enter("cuDevicePrimaryCtxRetain", Need::kInitialised, [&](Driver& d) { return retain_primary(d, pctx, dev); });
}
CUresult cuDevicePrimaryCtxRelease(CUdevice dev) {
  return enter("cuDevicePrimaryCtxRelease", Need::kInitialised, [&](Driver& d) { return release_primary(d, dev); });
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  return enter("cuDevicePrimaryCtxRelease_v2", Need::kInitialised, [&](Driver& d) { return release_primary(d, dev); });
}
CUresult cuDevicePrimaryCtxReset(CUdevice dev) {
  return enter("cuDevicePrimaryCtxReset", Need::kInitialised, [&](Driver& d) { return reset_primary(d, dev); });
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  return enter("cuDevicePrimaryCtxReset_v2", Need::kInitialised, [&](Driver& d) { return reset_primary(d, dev); });
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) {
  return enter("cuDevicePrimaryCtxSetFlags", Need::kInitialised,
               [&](Driver& d) { return set_primary_flags(d, dev, flags); });
}
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
  return enter("cuDevicePrimaryCtxSetFlags_v2", Need::kInitialised,
               [&](Driver& d) { return set_primary_flags(d, dev, flags); });
}
CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int* flags, int* active) {
  return enter("cuDevicePrimaryCtxGetState", Need::kInitialised, [&](Driver& d) {
    Device* const device = d.device(dev);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = device->primary_flags;
    *active = device->primary_count > 0 ? 1 : 0;
    return CUDA_SUCCESS;
  });
}
