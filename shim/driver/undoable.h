// Calls by which the driver takes memory of its own, at once, and that can be refused or undone: the stack size of a
// context, the loading of modules and libraries, the making of streams. What a stack takes is known beforehand; a
// module or a stream is measured, and goes again if it does not fit.
#pragma once

#include "shim/driver/call.h"
#include "shim/driver/first_uses.h"
#include "shim/driver/step.h"

namespace gpucap::driver::undoable {

// A stream took 2 MiB every fourth time and 4 MiB at most; destroyed alone it gives nothing back (measured).
inline constexpr uint64_t kMostOfStream = 4 * core::kMiB;

class LimitStep {
 public:
  Go begin(Api api, CUlimit limit, size_t value);
  // Returns what the program gets; sets the old value again if the new one turned out not to fit.
  CUresult end(CUresult result);
  CUresult refuse() { return refuse_by_cap(*process_, *device_, api_, promised_); }

 private:
  Process* process_ = nullptr;
  Device* device_ = nullptr;
  Api api_ = Api::kNone;
  CUlimit limit_ = CU_LIMIT_STACK_SIZE;
  size_t before_ = 0;
  uint64_t promised_ = 0;
};

class LoadStep {
 public:
  // `most`: what the call takes at most, 0 if that cannot be known beforehand.
  Go begin(Api api, uint64_t most);
  // False if what was loaded must go.
  [[nodiscard]] bool end(CUresult result);
  // What was taken is known: there was a look, and no call of another thread was in its way.
  [[nodiscard]] bool is_certain() const {
    return device_ != nullptr && !device_->inexact.load(std::memory_order_relaxed);
  }
  CUresult refuse();

 private:
  Process* process_ = nullptr;
  Device* device_ = nullptr;
  Api api_ = Api::kNone;
  int64_t driver_before_ = 0;
  uint64_t promised_ = 0;
  uint64_t taken_ = 0;
};

template <typename Function>
CUresult set_limit(const Call<Function>& call, CUlimit limit, size_t value) {
  LimitStep step;
  const Go go = step.begin(call.api(), limit, value);
  if (go == Go::kPass) return call();
  if (go == Go::kRefuse) return step.refuse();
  return step.end(call());
}

template <typename Function, typename Handle, typename Unload>
CUresult load_with(const Call<Function>& call, LoadStep& step, Handle* out, uint64_t most, Unload unload) {
  if (out == nullptr) return call();
  const Go go = step.begin(call.api(), most);
  if (go == Go::kPass) return call();
  if (go == Go::kRefuse) return step.refuse();
  const Handle before = *out;
  const CUresult result = call();
  if (step.end(result)) return result;
  unload(*out);
  *out = before;
  return step.refuse();
}

template <typename Function>
CUresult load_module(const Call<Function>& call, CUmodule* out) {
  LoadStep step;
  return load_with(call, step, out, 0, [](CUmodule module) { real().cuModuleUnload(module); });
}

template <typename Function>
CUresult load_library(const Call<Function>& call, CUlibrary* out) {
  LoadStep step;
  return load_with(call, step, out, 0, [](CUlibrary library) { real().cuLibraryUnload(library); });
}

template <typename Function>
CUresult create_stream(const Call<Function>& call, CUstream* out) {
  LoadStep step;
  return load_with(call, step, out, kMostOfStream, [](CUstream stream) { real().cuStreamDestroy_v2(stream); });
}

// A look-up by which a library is loaded into the current context. What was loaded goes with the library only, so the
// program, told that there is no memory, has to unload that; but no second library gets past the cap.
template <typename Function, typename Handle>
CUresult first_use(const Call<Function>& call, uint64_t key, Handle* out) {
  const first_uses::Moment moment(call.api());
  if (moment.had_both(key)) return call();
  LoadStep step;
  const CUresult result = load_with(call, step, out, 0, [](Handle) {});
  if (result == CUDA_SUCCESS && step.is_certain()) moment.note(key);
  return result;
}

}  // namespace gpucap::driver::undoable
