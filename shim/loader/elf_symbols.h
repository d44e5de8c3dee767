// Looks a function up in one loaded object by reading its dynamic symbol table, without dlsym. Needed once, to find the
// C library's own dlsym and dlvsym while the names resolve to ours. Read-only; no allocation; no locks but the
// loader's.
#pragma once

namespace gpucap::loader {

// The address of the default-version `name` in the first loaded object whose file name starts with one of `sonames`
// ("libc.so", "libdl.so"); nullptr if no object has it. Indirect functions (IFUNC) are not resolved and do not count.
void* find_in_loaded_object(const char* name, const char* const* sonames, int soname_count);

}  // namespace gpucap::loader
