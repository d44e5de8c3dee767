// dlopen with RTLD_DEEPBIND makes a plugin look into its own dependencies before it looks at preloaded libraries, so
// its calls of the driver would go past us. Before such a plugin is opened, and only if it will use CUDA, the driver is
// loaded and the names that we stand in for are pointed at our functions in the driver's own symbol table. Called by
// dlopen.S; the opening itself is the loader's, by a jump, since dlopen looks at its caller too.
#include <dlfcn.h>

#include <cstring>

#include "shim/core/spin_lock.h"
#include "shim/driver/real_driver.h"
#include "shim/loader/elf_file.h"
#include "shim/loader/real_dl.h"
#include "shim/loader/symbol_patch.h"

namespace gpucap {
namespace {

bool will_use_cuda(const char* file) {
  if (loader::handle_if_loaded("libcuda.so.1") != nullptr) return true;
  if (strchr(file, '/') != nullptr) return loader::file_uses_cuda(file);
  // A bare name is searched for by the loader's rules, which are not ours to repeat; these need no search.
  return strncmp(file, "libcuda.so", 10) == 0 || strncmp(file, "libcudart", 9) == 0;
}

void cover_the_driver() {
  static core::SpinLock lock;
  static bool done = false;
  const core::SpinGuard guard(lock);
  if (done) return;
  void* library = loader::load_library("libcuda.so.1");
  if (library == nullptr) return;
  driver::real();  // the real addresses first: afterwards the table no longer tells them
  for (int i = 1; i < static_cast<int>(driver::Api::kCount); ++i) {
    const char* name = driver::name_of(static_cast<driver::Api>(i));
    if (const void* ours = driver::hook_for_name(name)) loader::point_symbol_at(library, name, ours);
  }
  done = true;
}

}  // namespace

extern "C" __attribute__((visibility("hidden"), used)) void* gpucap_route_dlopen(const char* file, int flags) {
  if ((flags & RTLD_DEEPBIND) != 0 && file != nullptr && will_use_cuda(file)) cover_the_driver();
  return reinterpret_cast<void*>(loader::real_dlopen());
}

}  // namespace gpucap
