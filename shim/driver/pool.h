// Stream-ordered memory. A pool is charged with what it has reserved, whether lent out or kept after a free;
// core/pool_model.h says how much a request can make it grow. Frees change nothing until the pool shrinks, at a
// synchronise or a trim.
#pragma once

#include "shim/driver/call.h"
#include "shim/driver/current.h"
#include "shim/driver/shrink_time.h"
#include "shim/driver/step.h"

namespace gpucap::driver::pool {

// Which stream 0 means.
enum class Default : uint8_t { kLegacy, kPerThread };

struct Pool;

class Step {
 public:
  // `pool` null: the device's current pool.
  Go begin(Api api, uint64_t bytes, CUmemoryPool pool, CUstream stream, Default stream_zero);
  CUresult end(CUresult result, uint64_t address);
  template <typename Function>
  CUresult ask(const Call<Function>& call) {
    return ask_driver(call, *process_, *device_, bytes_, Timing::kOneInSixteen);
  }
  CUresult refuse() { return refuse_by_cap(*process_, *device_, api_, bytes_); }

 private:
  Process* process_ = nullptr;
  Device* device_ = nullptr;
  Pool* pool_ = nullptr;
  Api api_ = Api::kNone;

  bool find_named(CUmemoryPool handle, CUstream stream);
  __attribute__((cold)) void charge_growth(uint64_t address);
  __attribute__((noinline)) void make_certain(uint64_t address);
  __attribute__((cold)) CUresult failed(CUresult result);

  uint64_t bytes_ = 0;
  uint64_t promised_ = 0;
  Epoch epoch_ = 0;
};

void created(CUmemoryPool pool, const CUmemPoolProps& props);
void imported(CUmemoryPool pool);
void begin_destroy(CUmemoryPool pool, Pool** known);
void end_destroy(CUresult result, CUmemoryPool pool, Pool* known);
void trimmed(CUmemoryPool pool, const ShrinkTime& time);
void current_changed(CUdevice device);
void capture_begun();

// Makes every pool of the device give back what it keeps.
void reclaim_pools(Process& process, Device& device);

// Pools that may have shrunk in that time: asks the driver and corrects their charges. Cheap when there are none.
void refresh_shrinkable(Process& process, const ShrinkTime& time);
// Asks for every pool of the device that holds memory; true if any charge changed. Part of every look, see
// Parts::before_look.
bool refresh_all(Process& process, Device& device);

template <typename Function>
CUresult charge_from_pool(const Call<Function>& call, CUdeviceptr* out, uint64_t bytes, CUmemoryPool pool,
                          CUstream stream, Default stream_zero) {
  if (out == nullptr || bytes == 0) return call();
  Step step;
  const Go go = step.begin(call.api(), bytes, pool, stream, stream_zero);
  if (go == Go::kPass) return call();
  if (go == Go::kRefuse) return step.refuse();
  const CUresult result = step.ask(call);
  return step.end(result, *out);
}

template <typename Function>
CUresult charge_on_stream(const Call<Function>& call, CUdeviceptr* out, uint64_t bytes, CUstream stream,
                          Default stream_zero) {
  return charge_from_pool(call, out, bytes, nullptr, stream, stream_zero);
}

template <typename Function>
CUresult create(const Call<Function>& call, CUmemoryPool* pool, const CUmemPoolProps* props) {
  const CUresult result = call();
  if (result == CUDA_SUCCESS) created(*pool, *props);
  return result;
}

template <typename Function>
CUresult import(const Call<Function>& call, CUmemoryPool* pool) {
  const CUresult result = call();
  if (result == CUDA_SUCCESS) imported(*pool);
  return result;
}

template <typename Function>
CUresult destroy(const Call<Function>& call, CUmemoryPool pool) {
  Pool* known = nullptr;
  begin_destroy(pool, &known);
  const CUresult result = call();
  end_destroy(result, pool, known);
  return result;
}

template <typename Function>
CUresult trim(const Call<Function>& call, CUmemoryPool pool) {
  const ShrinkTime time;
  const CUresult result = call();
  if (result == CUDA_SUCCESS) trimmed(pool, time);
  return result;
}

// device -1: any.
template <typename Function>
CUresult set_current(const Call<Function>& call, CUdevice device) {
  const CUresult result = call();
  if (result == CUDA_SUCCESS) current_changed(device);
  return result;
}

template <typename Function>
CUresult begin_capture(const Call<Function>& call) {
  capture_begun();  // before, so that no allocation slips between
  return call();
}

}  // namespace gpucap::driver::pool
