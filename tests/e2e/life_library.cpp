// A plugin that uses CUDA behind its program's back: when it is loaded, when it is asked, and when it goes away.
#include <cstdio>

#include "shim/driver/cuda.h"

namespace {

struct Keeper {
  CUdeviceptr memory = 0;
  ~Keeper() {
    CUdeviceptr more = 0;
    const int taken = static_cast<int>(cuMemAlloc_v2(&more, 3 << 20));
    const int given = static_cast<int>(cuMemFree_v2(memory));
    std::printf("library's destructor: alloc %d free %d\n", taken, given);
    std::fflush(stdout);
  }
};
Keeper keeper;

}  // namespace

extern "C" __attribute__((visibility("default"))) int library_take(CUdeviceptr* memory, size_t bytes) {
  if (keeper.memory == 0) cuMemAlloc_v2(&keeper.memory, 5 << 20);
  return static_cast<int>(cuMemAlloc_v2(memory, bytes));
}
