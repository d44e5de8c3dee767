// The C types of the CUDA runtime's ABI that the fake runtime speaks, declared here so that one source builds as both
// runtimes without any runtime header. Errors are plain ints with the values of cudaError_t.
#pragma once

#include <cstddef>

#define FAKE_CUDART extern "C" __attribute__((visibility("default")))

namespace fake_runtime {

struct Extent {
  size_t width, height, depth;
};
struct PitchedPtr {
  void* ptr;
  size_t pitch, xsize, ysize;
};
struct ChannelFormat {
  int x, y, z, w;
  int kind;  // 0 signed, 1 unsigned, 2 float
};
// The start of cudaDeviceProp, all that callers of the fake may rely on.
struct DevicePropertiesStart {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luid_device_node_mask;
  size_t total_global_mem;
};
static_assert(offsetof(DevicePropertiesStart, total_global_mem) == 288);

}  // namespace fake_runtime
