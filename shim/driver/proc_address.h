// cuGetProcAddress: the driver answers for names, versions, flags and status; if the address it gives is that of a
// function that we stand in for, ours goes in its place. Works before cuInit, as the very first call, and for whatever
// a program asks for.
#pragma once

#include "shim/driver/call.h"
#include "shim/driver/real_driver.h"

namespace gpucap::driver::proc_address {

template <typename Function>
CUresult swap(const Call<Function>& call, void** pfn) {
  const CUresult result = call();
  if (result == CUDA_SUCCESS && pfn != nullptr && *pfn != nullptr) {
    if (void* ours = hook_for_real_address(*pfn)) *pfn = ours;
  }
  return result;
}

}  // namespace gpucap::driver::proc_address
