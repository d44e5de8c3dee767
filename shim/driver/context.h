// Contexts: the driver takes some hundred MiB for each, and frees what was allocated in it when it goes. What one takes
// is expected from the last one on that device, measured right after by NVML, and given back with
// CUDA_ERROR_OUT_OF_MEMORY if it does not fit.
#pragma once

#include "shim/driver/call.h"
#include "shim/driver/first_uses.h"
#include "shim/driver/step.h"

namespace gpucap::driver::context {

// A green context shares the primary one and takes little more; it took 6 MiB, and keeps them (measured).
inline constexpr uint64_t kMostOfGreen = 8 * core::kMiB;

class CreateStep {
 public:
  // `most`: what it takes at most where that is known; 0: what the last context on the device took.
  Go begin(Api api, CUdevice device, uint64_t most);
  // False if the new context is over the cap and must go.
  [[nodiscard]] bool end(CUresult result);
  // What the program gets when nothing was created.
  [[nodiscard]] CUresult refuse();

 private:
  Process* process_ = nullptr;
  Device* device_ = nullptr;
  Api api_ = Api::kNone;
  int64_t driver_before_ = 0;
  int64_t card_before_ = -1;
  uint64_t promised_ = 0;
  bool expected_ = false;
};

// After a context went: everything that was allocated in it is uncharged.
void gone(CUcontext context);
// Around a call that ends a context: its number is set apart first, since another thread may be given the same handle
// at once.
uint8_t begin_destroy(CUcontext context);
void end_destroy(CUresult result, CUcontext context, uint8_t number);
// False if it is there still: others hold it.
bool primary_released(CUresult result, CUdevice device);
[[nodiscard]] bool primary_is_active(CUdevice device);
void primary_retained(CUcontext context, CUdevice device);

template <typename Function>
CUresult initialise(const Call<Function>& call) {
  const CUresult result = call();
  if (result == CUDA_SUCCESS)
    static_cast<void>(Process::get());  // a limit that cannot be read is said now, not hours later
  return result;
}

template <typename Function, typename Context, typename Undo>
CUresult create_with(const Call<Function>& call, Context* out, CUdevice device, uint64_t most, Undo undo) {
  if (out == nullptr) return call();
  CreateStep step;
  const Go go = step.begin(call.api(), device, most);
  if (go == Go::kPass) return call();
  if (go == Go::kRefuse) return step.refuse();
  Context before = *out;
  const CUresult result = call.timed(Timing::kEach);
  if (step.end(result)) return result;
  undo(*out);
  *out = before;
  return step.refuse();
}

template <typename Function>
CUresult retain_primary(const Call<Function>& call, CUcontext* out, CUdevice device) {
  if (primary_is_active(device)) return call();
  const first_uses::Unloading unloading;  // whatever it held is gone, also where its end went unseen
  const CUresult result =
      create_with(call, out, device, 0, [&](CUcontext) { real().cuDevicePrimaryCtxRelease_v2(device); });
  if (result == CUDA_SUCCESS && out != nullptr) primary_retained(*out, device);
  return result;
}

template <typename Function>
CUresult release_primary(const Call<Function>& call, CUdevice device) {
  first_uses::Unloading unloading;
  const CUresult result = call();
  if (!primary_released(result, device)) unloading.nothing_went();
  return result;
}

// Ends it whoever holds it.
template <typename Function>
CUresult reset_primary(const Call<Function>& call, CUdevice device) {
  const first_uses::Unloading unloading;
  const CUresult result = call();
  primary_released(result, device);
  return result;
}

template <typename Function>
CUresult create(const Call<Function>& call, CUcontext* out, CUdevice device) {
  return create_with(call, out, device, 0, [](CUcontext made) { real().cuCtxDestroy_v2(made); });
}

template <typename Function>
CUresult create_green(const Call<Function>& call, CUgreenCtx* out, CUdevice device) {
  return create_with(call, out, device, kMostOfGreen, [](CUgreenCtx made) { real().cuGreenCtxDestroy(made); });
}

template <typename Function>
CUresult destroy(const Call<Function>& call, CUcontext context) {
  const first_uses::Unloading unloading;
  const uint8_t number = begin_destroy(context);
  const CUresult result = call();
  end_destroy(result, context, number);
  return result;
}

}  // namespace gpucap::driver::context
