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
std::atomic<DlopenFunction> dlopen_cache{nullptr};

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

// A look-up through a library that is loaded already, without keeping a reference or a trace in dlerror().
void* find_through(const link_map* map, const char* name) {
  void* handle = map->l_name[0] == '\0' ? nullptr : handle_if_loaded(map->l_name);
  if (handle == nullptr) return nullptr;
  void* found = real_dlsym()(handle, name);
  if (found == nullptr) dlerror();
  dlclose(handle);
  return found;
}

// The last object that was loaded before any dlopen of the program's; objects are linked in the order of loading.
const link_map* last_at_start = nullptr;
__attribute__((constructor)) void remember_the_start() {
  const link_map* map = map_of(reinterpret_cast<const void*>(&remember_the_start));
  while (map != nullptr && map->l_next != nullptr) map = map->l_next;
  last_at_start = map;
}

}  // namespace

DlsymFunction real_dlsym() { return find_once(dlsym_cache, "dlsym"); }
DlvsymFunction real_dlvsym() { return find_once(dlvsym_cache, "dlvsym"); }
DlopenFunction real_dlopen() { return find_once(dlopen_cache, "dlopen"); }

void* handle_if_loaded(const char* soname) {
  const int saved = errno;
  void* handle = real_dlopen()(soname, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) dlerror();
  errno = saved;
  return handle;
}

void* load_library(const char* soname) {
  const int saved = errno;
  void* handle = real_dlopen()(soname, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) dlerror();
  errno = saved;
  return handle;
}

const void* object_of(const void* address) { return map_of(address); }

bool was_there_at_start(const void* address) {
  if (last_at_start == nullptr) return false;
  // Backwards from the end of the start: objects that were loaded later are not on the way.
  const link_map* const map = map_of(address);
  for (const link_map* at_start = last_at_start; at_start != nullptr; at_start = at_start->l_prev)
    if (at_start == map) return true;
  return false;
}

void* find_from(const void* caller, const char* name) {
  const link_map* map = map_of(caller);
  return map == nullptr ? nullptr : find_through(map, name);
}

void* next_at_start(const void* caller, const char* name) {
  const link_map* const ours = map_of(reinterpret_cast<const void*>(&next_at_start));
  for (const link_map* map = map_of(caller); map != nullptr && map != last_at_start;) {
    map = map->l_next;
    if (map == nullptr || map == ours) continue;
    // A search through the object's own handle also visits what it depends on, so the answer must lie in the object.
    void* found = find_through(map, name);
    if (found != nullptr && map_of(found) == map) return found;
  }
  return nullptr;
}

}  // namespace gpucap::loader
