#include "shim/loader/real_dl.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cerrno>

#include "shim/loader/elf_symbols.h"

namespace gpucap::loader {
namespace {

// Since glibc 2.34 these live in libc itself; libdl.so then holds only stubs with hidden versions.
constexpr const char* kHomes[] = {"libc.so", "libdl.so", "libc-2.", "libdl-2."};

std::atomic<DlsymFunction> dlsym_cache{nullptr};
std::atomic<DlvsymFunction> dlvsym_cache{nullptr};

template <typename Function>
Function find_once(std::atomic<Function>& cache, const char* name) {
  Function function = cache.load(std::memory_order_relaxed);
  if (function != nullptr) return function;
  function = reinterpret_cast<Function>(find_in_loaded_object(name, kHomes, sizeof(kHomes) / sizeof(kHomes[0])));
  cache.store(function, std::memory_order_relaxed);  // every thread finds the same
  return function;
}

const link_map* map_of(const void* address) {
  Dl_info info;
  link_map* map = nullptr;
  if (address == nullptr || dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0)
    return nullptr;
  return map;
}

}  // namespace

DlsymFunction real_dlsym() { return find_once(dlsym_cache, "dlsym"); }
DlvsymFunction real_dlvsym() { return find_once(dlvsym_cache, "dlvsym"); }

void* handle_if_loaded(const char* soname) {
  const int saved = errno;
  void* handle = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) dlerror();
  errno = saved;
  return handle;
}

void* load_library(const char* soname) {
  const int saved = errno;
  void* handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) dlerror();
  errno = saved;
  return handle;
}

const void* object_of(const void* address) { return map_of(address); }

void* next_definition(const void* caller, const char* name) {
  const link_map* const ours = map_of(reinterpret_cast<const void*>(&next_definition));
  const link_map* map = map_of(caller);
  if (map == nullptr) return nullptr;
  for (map = map->l_next; map != nullptr; map = map->l_next) {
    if (map == ours) continue;
    // A search through the object's own handle also visits what it depends on, so the answer must lie in the object.
    // Objects opened RTLD_LOCAL are visited too: the loader's own search would skip some of them, and finding more of
    // the driver than it would is the safe side here.
    void* handle = handle_if_loaded(map->l_name);
    if (handle == nullptr) continue;
    void* found = real_dlsym()(handle, name);
    if (found == nullptr) dlerror();
    dlclose(handle);
    if (found != nullptr && map_of(found) == map) return found;
  }
  return nullptr;
}

}  // namespace gpucap::loader
