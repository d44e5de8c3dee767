// Calls after which figures may have moved without an allocation. `after` only leaves a mark, so that the next grant
// looks at NVML first; `at_rest` follows a synchronise, where pools shrink and a program pauses: the figures are put
// right there.
#pragma once

#include "shim/driver/call.h"
#include "shim/driver/current.h"
#include "shim/driver/first_uses.h"
#include "shim/driver/pool.h"
#include "shim/process/process.h"

namespace gpucap::driver::look {

// Brings the charges of pools and graphs up to what the driver says; true if any changed. Parts::before_look.
bool bring_up_to_date(Process& process, Device& device);
void something_moved();
void put_right(const pool::ShrinkTime& time);

template <typename Function>
CUresult after(const Call<Function>& call) {
  forget_what_threads_remember();  // before: what goes may come back at once under the same name
  const CUresult result = call();
  something_moved();  // also after a failure: part of the work may have been done
  return result;
}

// After a call that may have been one of a key's first uses, and may have taken something.
inline void note_use(const first_uses::Moment& moment, CUresult result, uint64_t key) {
  if (moment.had_both(key)) return;
  something_moved();
  if (result == CUDA_SUCCESS) moment.note(key);
}

// A look-up whose answer is the handle that is used.
template <typename Function, typename Handle>
CUresult after_look_up(const Call<Function>& call, Handle* out) {
  const first_uses::Moment moment(call.api());
  const CUresult result = call();
  if (result == CUDA_SUCCESS && out != nullptr) {
    note_use(moment, result, first_uses::key_of(*out));
  } else {
    something_moved();
  }
  return result;
}

template <typename Function>
CUresult after_load(const Call<Function>& call, uint64_t key) {
  const first_uses::Moment moment(call.api());
  const CUresult result = call();
  note_use(moment, result, key);
  return result;
}

template <typename Function>
CUresult after_unload(const Call<Function>& call) {
  const first_uses::Unloading unloading;
  return after(call);
}

template <typename Function>
CUresult at_rest(const Call<Function>& call) {
  const pool::ShrinkTime time;
  const CUresult result = call();
  put_right(time);
  return result;
}

}  // namespace gpucap::driver::look
