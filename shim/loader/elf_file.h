// What a shared library's file says about itself before it is loaded. Reads, never maps; any thread.
#pragma once

namespace gpucap::loader {

// Whether the library at `path` will use CUDA: it needs the driver or the runtime, or carries code for GPUs (a runtime
// linked in statically leaves no other trace). False for whatever is not a readable 64-bit ELF file.
bool file_uses_cuda(const char* path);

}  // namespace gpucap::loader
