// Streams. See stream.h; capture is in capture.cpp.
#include "tests/fake_cuda/stream.h"

#include "tests/fake_cuda/graph.h"
#include "tests/fake_cuda/pool.h"

namespace fake {
namespace {

uint64_t next_id = 0;

CUresult create(Driver& driver, CUstream* out, unsigned flags, int priority) {
  if (out == nullptr || flags > 1) return CUDA_ERROR_INVALID_VALUE;
  Context* const context = current_context();
  if (!driver.take(context->device, kStreamBytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  Stream* const stream = make_default_stream(driver, context);
  stream->is_default = false;
  stream->flags = flags;
  stream->priority = priority;
  *out = reinterpret_cast<CUstream>(stream);
  return CUDA_SUCCESS;
}

void destroy(Driver& driver, Stream* stream) {
  if (!stream->is_default) driver.give(stream->context->device, kStreamBytes);
  if (stream->owns_capture) delete_graph(stream->capture);
  driver.streams.erase(stream);
  delete stream;
}

CUresult destroy_handle(Driver& driver, CUstream handle) {
  auto* const stream = reinterpret_cast<Stream*>(handle);
  if (driver.streams.count(stream) == 0 || stream->is_default) return CUDA_ERROR_INVALID_HANDLE;
  destroy(driver, stream);
  return CUDA_SUCCESS;
}

// For the functions that need a living stream and nothing else.
template <class Body>
CUresult with_stream(const char* name, CUstream handle, bool per_thread, Body body) {
  return enter(name, Need::kInitialised, [&](Driver& driver) {
    Stream* const stream = find_stream(driver, handle, per_thread);
    if (stream == nullptr) return handle == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
    return body(driver, *stream);
  });
}

CUresult wait(Driver& driver, const Stream& stream) {
  if (stream.capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  synchronise(driver, stream.context->device);
  return CUDA_SUCCESS;
}

template <class Out, class Value>
CUresult store(Out* out, Value value) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = static_cast<Out>(value);
  return CUDA_SUCCESS;
}

}  // namespace

Stream* make_default_stream(Driver& driver, Context* context) {
  auto* const stream = new Stream;
  stream->context = context;
  stream->id = ++next_id;
  stream->is_default = true;
  driver.streams.insert(stream);
  return stream;
}

void destroy_all_streams(Driver& driver, Context* context) {
  const std::vector<Stream*> all(driver.streams.begin(), driver.streams.end());
  for (Stream* const stream : all) {
    if (stream->context == context) destroy(driver, stream);
  }
}

Stream* find_stream(Driver& driver, CUstream handle, bool per_thread) {
  const auto number = reinterpret_cast<uint64_t>(handle);
  if (number > 2) {
    auto* const stream = reinterpret_cast<Stream*>(handle);
    return driver.streams.count(stream) == 0 ? nullptr : stream;
  }
  Context* const context = current_context();
  if (driver.contexts.count(context) == 0) return nullptr;
  const bool thread_stream = number == 2 || (number == 0 && per_thread);
  return thread_stream ? context->thread_stream : context->legacy_stream;
}

void synchronise(Driver& driver, int device) { trim_pools_at_synchronise(driver, device); }

}  // namespace fake

using namespace fake;

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  return enter("cuStreamCreate", Need::kContext, [&](Driver& d) { return create(d, stream, flags, 0); });
}
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  return enter("cuStreamCreateWithPriority", Need::kContext,
               [&](Driver& d) { return create(d, stream, flags, priority); });
}
CUresult cuStreamDestroy_v2(CUstream stream) {
  return enter("cuStreamDestroy_v2", Need::kInitialised, [&](Driver& d) { return destroy_handle(d, stream); });
}
CUresult cuStreamDestroy(CUstream stream) {
  return enter("cuStreamDestroy", Need::kInitialised, [&](Driver& d) { return destroy_handle(d, stream); });
}
CUresult cuCtxSynchronize() {
  return enter("cuCtxSynchronize", Need::kContext, [&](Driver& d) {
    if (spoils_captures(d)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    synchronise(d, current_context()->device);
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxSynchronize_v2(CUcontext ctx) {
  return enter("cuCtxSynchronize_v2", Need::kInitialised, [&](Driver& d) {
    Context* const context = ctx == nullptr ? current_context() : as_context(ctx);
    if (d.contexts.count(context) == 0) return CUDA_ERROR_INVALID_CONTEXT;
    synchronise(d, context->device);
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return enter("cuCtxGetStreamPriorityRange", Need::kContext, [&](Driver&) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
    return CUDA_SUCCESS;
  });
}

// Both spellings of a function: the plain one, and the one of programs built for per-thread default streams.
#define FAKE_BOTH_SPELLINGS(name, parameters, handle, body)                        \
  CUresult name parameters { return with_stream(#name, handle, false, [&] body); } \
  CUresult name##_ptsz parameters { return with_stream(#name "_ptsz", handle, true, [&] body); }

FAKE_BOTH_SPELLINGS(
    cuStreamSynchronize, (CUstream h), h, (Driver & d, Stream& s) { return wait(d, s); })
FAKE_BOTH_SPELLINGS(
    cuStreamQuery, (CUstream h), h, (Driver&, Stream&) { return CUDA_SUCCESS; })
FAKE_BOTH_SPELLINGS(
    cuStreamGetCtx, (CUstream h, CUcontext* out), h, (Driver&, Stream& s) { return store(out, as_handle(s.context)); })
FAKE_BOTH_SPELLINGS(
    cuStreamGetDevice, (CUstream h, CUdevice* out), h, (Driver&, Stream& s) { return store(out, s.context->device); })
FAKE_BOTH_SPELLINGS(
    cuStreamGetFlags, (CUstream h, unsigned int* out), h, (Driver&, Stream& s) { return store(out, s.flags); })
FAKE_BOTH_SPELLINGS(
    cuStreamGetPriority, (CUstream h, int* out), h, (Driver&, Stream& s) { return store(out, s.priority); })
FAKE_BOTH_SPELLINGS(
    cuStreamGetId, (CUstream h, unsigned long long* out), h, (Driver&, Stream& s) { return store(out, s.id); })
FAKE_BOTH_SPELLINGS(
    cuStreamWaitEvent, (CUstream h, CUevent, unsigned int), h, (Driver&, Stream&) { return CUDA_SUCCESS; })
FAKE_BOTH_SPELLINGS(
    cuStreamAttachMemAsync, (CUstream h, CUdeviceptr, size_t, unsigned int), h,
    (Driver&, Stream&) { return CUDA_SUCCESS; })
FAKE_BOTH_SPELLINGS(
    cuStreamGetCtx_v2, (CUstream h, CUcontext* out, CUgreenCtx* green), h, (Driver&, Stream& s) {
      if (green != nullptr) *green = nullptr;
      return store(out, as_handle(s.context));
    })

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void* data) {
  const CUresult result = with_stream("cuLaunchHostFunc", stream, false, [](Driver&, Stream&) { return CUDA_SUCCESS; });
  if (result == CUDA_SUCCESS) fn(data);  // outside the lock
  return result;
}
CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn fn, void* data) {
  const CUresult result =
      with_stream("cuLaunchHostFunc_ptsz", stream, true, [](Driver&, Stream&) { return CUDA_SUCCESS; });
  if (result == CUDA_SUCCESS) fn(data);
  return result;
}
