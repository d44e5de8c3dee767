// What the program is told about memory: total = the smaller of cap and card, free = the smaller of what the cap leaves
// and what the card has free. The driver answers first, so its errors and its view of NULL pointers stay; we only lower
// figures.
#pragma once

#include "shim/driver/call.h"

namespace gpucap::driver::info {

struct Figures {
  uint64_t free_bytes = UINT64_MAX;
  uint64_t total_bytes = UINT64_MAX;
};

// Upper bounds for the current context's device; all ones where gpucap has no say.
Figures of_current_device();
uint64_t total_of(CUdevice device);

template <typename Number>
void lower(Number* figure, uint64_t bound) {
  if (figure != nullptr && *figure > bound) *figure = static_cast<Number>(bound);
}

template <typename Function, typename Number>
CUresult memory(const Call<Function>& call, Number* free_bytes, Number* total_bytes) {
  const CUresult result = call();
  if (result != CUDA_SUCCESS) return result;
  const Figures figures = of_current_device();
  lower(free_bytes, figures.free_bytes);
  lower(total_bytes, figures.total_bytes);
  return result;
}

template <typename Function, typename Number>
CUresult total(const Call<Function>& call, Number* bytes, CUdevice device) {
  const CUresult result = call();
  if (result == CUDA_SUCCESS) lower(bytes, total_of(device));
  return result;
}

}  // namespace gpucap::driver::info
