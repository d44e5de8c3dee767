// Events: take nothing, are complete at once. Waiting for one is a synchronise like any other.
#include <chrono>

#include "tests/fake_cuda/stream.h"

namespace fake {

struct Event {
  Context* context = nullptr;
  bool recorded = false;
  std::chrono::steady_clock::time_point time;
};

namespace {

Event* find(Driver& driver, CUevent handle) {
  auto* const event = reinterpret_cast<Event*>(handle);
  for (Context* const context : driver.contexts) {
    if (context->events.count(event) != 0) return event;
  }
  return nullptr;
}

CUresult destroy(Driver& driver, CUevent handle) {
  Event* const event = find(driver, handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  event->context->events.erase(event);
  delete event;
  return CUDA_SUCCESS;
}

CUresult record(Driver& driver, CUevent handle, CUstream stream, bool per_thread) {
  Event* const event = find(driver, handle);
  if (event == nullptr || find_stream(driver, stream, per_thread) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  event->recorded = true;
  event->time = std::chrono::steady_clock::now();
  return CUDA_SUCCESS;
}

CUresult elapsed(Driver& driver, float* out, CUevent first, CUevent second) {
  const Event* const start = find(driver, first);
  const Event* const end = find(driver, second);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (start == nullptr || end == nullptr || !start->recorded || !end->recorded) return CUDA_ERROR_INVALID_HANDLE;
  *out = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return CUDA_SUCCESS;
}

}  // namespace

void destroy_all_events(Context* context) {
  for (Event* const event : context->events) delete event;
  context->events.clear();
}

}  // namespace fake

using namespace fake;

CUresult cuEventCreate(CUevent* event, unsigned int) {
  return enter("cuEventCreate", Need::kContext, [&](Driver&) {
    if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto* const made = new Event;
    made->context = current_context();
    made->context->events.insert(made);
    *event = reinterpret_cast<CUevent>(made);
    return CUDA_SUCCESS;
  });
}
CUresult cuEventDestroy(CUevent event) {
  return enter("cuEventDestroy", Need::kInitialised, [&](Driver& d) { return destroy(d, event); });
}
CUresult cuEventDestroy_v2(CUevent event) {
  return enter("cuEventDestroy_v2", Need::kInitialised, [&](Driver& d) { return destroy(d, event); });
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  return enter("cuEventRecord", Need::kInitialised, [&](Driver& d) { return record(d, event, stream, false); });
}
CUresult cuEventRecord_ptsz(CUevent event, CUstream stream) {
  return enter("cuEventRecord_ptsz", Need::kInitialised, [&](Driver& d) { return record(d, event, stream, true); });
}
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int) {
  return enter("cuEventRecordWithFlags", Need::kInitialised,
               [&](Driver& d) { return record(d, event, stream, false); });
}
CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned int) {
  return enter("cuEventRecordWithFlags_ptsz", Need::kInitialised,
               [&](Driver& d) { return record(d, event, stream, true); });
}
CUresult cuEventQuery(CUevent event) {
  return enter("cuEventQuery", Need::kInitialised,
               [&](Driver& d) { return find(d, event) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS; });
}
CUresult cuEventSynchronize(CUevent event) {
  return enter("cuEventSynchronize", Need::kInitialised, [&](Driver& d) {
    const Event* const found = find(d, event);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    synchronise(d, found->context->device);
    return CUDA_SUCCESS;
  });
}
CUresult cuEventElapsedTime(float* out, CUevent start, CUevent end) {
  return enter("cuEventElapsedTime", Need::kInitialised, [&](Driver& d) { return elapsed(d, out, start, end); });
}
CUresult cuEventElapsedTime_v2(float* out, CUevent start, CUevent end) {
  return enter("cuEventElapsedTime_v2", Need::kInitialised, [&](Driver& d) { return elapsed(d, out, start, end); });
}
