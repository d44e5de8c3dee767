// Which CUDA runtime a caller was linked with. A process can hold several (12 and 13, each opened RTLD_LOCAL by
// Python), and each caller must be served by its own: the caller's DT_NEEDED entries name it.
#pragma once

namespace gpucap::runtime {

// The definition of `name` in the runtime of the object that `caller` lies in; without such an entry, in the first
// runtime that is loaded. nullptr if there is none. Not fast: callers remember the answer.
void* find_for_caller(const void* caller, const char* name);

// The definition of `name` in the runtime of that soname, if it is loaded; it then stays loaded.
void* find_in_runtime(const char* soname, const char* name);

}  // namespace gpucap::runtime
