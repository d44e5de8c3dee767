// Stream capture: while it lasts, what the stream is asked to do becomes nodes of a graph and takes nothing.
#include "tests/fake_cuda/graph.h"
#include "tests/fake_cuda/stream.h"

namespace fake {

namespace {
thread_local CUstreamCaptureMode thread_capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
}

// All captures count as global ones.
bool spoils_captures(Driver& driver) {
  if (thread_capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  bool any = false;
  for (Stream* stream : driver.streams) {
    if (stream->capture == nullptr) continue;
    stream->capture_spoilt = true;
    any = true;
  }
  return any;
}

namespace {

CUresult begin(Driver& driver, CUstream handle, bool per_thread, CUgraph into) {
  Stream* const stream = find_stream(driver, handle, per_thread);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->is_default && stream == stream->context->legacy_stream) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  stream->owns_capture = into == nullptr;
  stream->capture_spoilt = false;
  stream->capture = into == nullptr ? new_graph() : reinterpret_cast<Graph*>(into);
  return CUDA_SUCCESS;
}

CUresult end(Driver& driver, CUstream handle, bool per_thread, CUgraph* out) {
  Stream* const stream = find_stream(driver, handle, per_thread);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  *out = reinterpret_cast<CUgraph>(stream->capture);
  const bool spoilt = stream->capture_spoilt;
  stream->capture = nullptr;
  stream->owns_capture = false;
  if (spoilt) *out = nullptr;
  return spoilt ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

CUresult query(Driver& driver, CUstream handle, bool per_thread, CUstreamCaptureStatus* status, cuuint64_t* id,
               CUgraph* graph) {
  const Stream* const stream = find_stream(driver, handle, per_thread);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool active = stream->capture != nullptr;
  *status = active ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  if (active && id != nullptr) *id = stream->id;
  if (active && graph != nullptr) *graph = reinterpret_cast<CUgraph>(stream->capture);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace fake

using namespace fake;

#define FAKE_CAPTURE(name, parameters, call)                         \
  CUresult name parameters {                                         \
    return enter(#name, Need::kInitialised, [&](Driver& d) {         \
      constexpr bool kPerThread = false;                             \
      return call;                                                   \
    });                                                              \
  }                                                                  \
  CUresult name##_ptsz parameters {                                  \
    return enter(#name "_ptsz", Need::kInitialised, [&](Driver& d) { \
      constexpr bool kPerThread = true;                              \
      return call;                                                   \
    });                                                              \
  }

FAKE_CAPTURE(cuStreamBeginCapture, (CUstream s), begin(d, s, kPerThread, nullptr))
FAKE_CAPTURE(cuStreamBeginCapture_v2, (CUstream s, CUstreamCaptureMode), begin(d, s, kPerThread, nullptr))
FAKE_CAPTURE(cuStreamBeginCaptureToGraph,
             (CUstream s, CUgraph graph, const CUgraphNode*, const CUgraphEdgeData*, size_t, CUstreamCaptureMode),
             begin(d, s, kPerThread, graph))
FAKE_CAPTURE(cuStreamEndCapture, (CUstream s, CUgraph* graph), end(d, s, kPerThread, graph))
FAKE_CAPTURE(cuStreamIsCapturing, (CUstream s, CUstreamCaptureStatus* status),
             query(d, s, kPerThread, status, nullptr, nullptr))
FAKE_CAPTURE(cuStreamGetCaptureInfo, (CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id),
             query(d, s, kPerThread, status, id, nullptr))

// Its nodes depend on nothing but their order, so there is nothing to tell about dependencies.
template <class T>
CUresult none(CUresult result, T* count) {
  if (result == CUDA_SUCCESS && count != nullptr) *count = 0;
  return result;
}
FAKE_CAPTURE(cuStreamGetCaptureInfo_v2,
             (CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph, const CUgraphNode**,
              size_t* count),
             none(query(d, s, kPerThread, status, id, graph), count))
FAKE_CAPTURE(cuStreamGetCaptureInfo_v3,
             (CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph, const CUgraphNode**,
              const CUgraphEdgeData**, size_t* count),
             none(query(d, s, kPerThread, status, id, graph), count))

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return enter("cuThreadExchangeStreamCaptureMode", Need::kInitialised, [&](Driver&) {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::swap(thread_capture_mode, *mode);
    return CUDA_SUCCESS;
  });
}
