// cuMemAlloc and its relatives: memory that belongs to the current context. Up to 1 MiB the driver packs requests into
// shared blocks of 2 MiB; above, it takes multiples of 2 MiB.
#pragma once

#include "shim/driver/call.h"
#include "shim/driver/current.h"
#include "shim/driver/step.h"

namespace gpucap::driver::linear {

inline constexpr uint64_t kBlock = core::BlockMap::kBlockBytes;
inline constexpr uint64_t kPitch = 512;  // what the driver rounds rows to; the true pitch can only be less

constexpr bool is_small(uint64_t bytes) { return bytes <= core::BlockMap::kLargestSmall; }
// Whether memory of that kind lies in a block that others share; managed memory does not.
constexpr bool shares_block(gpucap_kind kind, uint64_t bytes) { return kind == GPUCAP_KIND_LINEAR && is_small(bytes); }

constexpr uint64_t pitched_bytes(uint64_t width, uint64_t height) {
  const uint64_t row = core::round_up(width, kPitch);
  return height != 0 && row > UINT64_MAX / height ? UINT64_MAX : row * height;
}

// Measured on an H200: within a microsecond from a shared block, 30 for 4 MiB, and more for more.
constexpr Timing timing_of(gpucap_kind kind, uint64_t bytes) {
  if (shares_block(kind, bytes)) return Timing::kOneInSixteen;
  return kind == GPUCAP_KIND_LINEAR && bytes <= kSmallRequest ? Timing::kOneInSixteenAndSlow : Timing::kEach;
}

class Step {
 public:
  Go begin(Api api, gpucap_kind kind, uint64_t bytes);
  // Returns what the program gets: the driver's result, or a refusal if the allocation had to be undone.
  CUresult end(CUresult result, uint64_t address);
  template <typename Function>
  CUresult ask(const Call<Function>& call) {
    return ask_driver(call, *process_, *device_, bytes_, timing_of(kind_, bytes_));
  }
  CUresult refuse() { return refuse_by_cap(*process_, *device_, api_, bytes_); }

 private:
  Process* process_ = nullptr;
  Device* device_ = nullptr;
  Api api_ = Api::kNone;
  gpucap_kind kind_ = GPUCAP_KIND_NONE;
  uint8_t context_ = 0;
  bool must_not_grow_ = false;
  uint64_t bytes_ = 0;
  uint64_t promised_ = 0;
};

template <typename Function, typename Pointer>
CUresult charge_kind(const Call<Function>& call, gpucap_kind kind, Pointer* out, uint64_t bytes) {
  if (out == nullptr || bytes == 0) return call();
  Step step;
  const Go go = step.begin(call.api(), kind, bytes);
  if (go == Go::kPass) return call();
  if (go == Go::kRefuse) return step.refuse();
  const Pointer before = *out;
  const CUresult from_driver = step.ask(call);
  const CUresult result = step.end(from_driver, static_cast<uint64_t>(*out));
  if (result != from_driver) *out = before;
  return result;
}

template <typename Function, typename Pointer>
CUresult charge(const Call<Function>& call, Pointer* out, uint64_t bytes) {
  return charge_kind(call, GPUCAP_KIND_LINEAR, out, bytes);
}

template <typename Function, typename Pointer>
CUresult charge_managed(const Call<Function>& call, Pointer* out, uint64_t bytes) {
  return charge_kind(call, GPUCAP_KIND_MANAGED, out, bytes);
}

}  // namespace gpucap::driver::linear
