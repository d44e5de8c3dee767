#include "shim/loader/real_dl.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cerrno>
#include <climits>

#include "shim/loader/elf_symbols.h"

namespace gpucap::loader {
namespace {

// Since glibc 2.34 these live in libc itself; libdl.so then holds only stubs with hidden versions.
constexpr const char* kHomes[] = {"libc.so", "libdl.so", "libc-2.", "libdl-2."};

using DlcloseFunction = int (*)(void* handle);
using DlerrorFunction = char* (*)();

std::atomic<DlsymFunction> dlsym_cache{nullptr};
std::atomic<DlvsymFunction> dlvsym_cache{nullptr};
std::atomic<DlopenFunction> dlopen_cache{nullptr};
std::atomic<DlcloseFunction> dlclose_cache{nullptr};
std::atomic<DlerrorFunction> dlerror_cache{nullptr};

void* find_at_home(const char* name) { return find_in_loaded_object(name, kHomes, sizeof(kHomes) / sizeof(kHomes[0])); }

// Where libdl is a library of its own, a program may have none: we do not ask for one at load, since every program
// would pay for it. That old C library can bring it in by itself.
void bring_in_libdl() {
  using Function = void* (*)(const char* file, int flags);
  const auto open_mode = reinterpret_cast<Function>(find_at_home("__libc_dlopen_mode"));
  constexpr int kAsDlopen = INT_MIN;  // the flag that the C library's own calls carry
  if (open_mode != nullptr) open_mode("libdl.so.2", RTLD_NOW | kAsDlopen);
}

template <typename Function>
Function find_once(std::atomic<Function>& cache, const char* name) {
  Function function = cache.load(std::memory_order_relaxed);
  if (function != nullptr) return function;
  void* found = find_at_home(name);
  if (found == nullptr) {
    bring_in_libdl();
    found = find_at_home(name);
  }
  function = reinterpret_cast<Function>(found);
  cache.store(function, std::memory_order_relaxed);  // every thread finds the same
  return function;
}

void close_handle(void* handle) { find_once(dlclose_cache, "dlclose")(handle); }

struct PlaceSearch {
  ElfW(Addr) address;
  const link_map* found;
};

int visit_place(dl_phdr_info* info, size_t, void* argument) {
  auto* search = static_cast<PlaceSearch*>(argument);
  bool holds_it = false;
  ElfW(Addr) dynamic = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const ElfW(Addr) start = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_DYNAMIC) dynamic = start;
    holds_it = holds_it || (part.p_type == PT_LOAD && search->address - start < part.p_memsz);
  }
  if (!holds_it) return 0;
  const link_map* map = _r_debug.r_map;
  while (map != nullptr && reinterpret_cast<ElfW(Addr)>(map->l_ld) != dynamic) map = map->l_next;
  search->found = map;
  return 1;
}

// A look-up through a library that is loaded already, without keeping a reference or a trace in dlerror().
void* find_through(const link_map* map, const char* name) {
  void* handle = map->l_name[0] == '\0' ? nullptr : handle_if_loaded(map->l_name);
  if (handle == nullptr) return nullptr;
  void* found = real_dlsym()(handle, name);
  if (found == nullptr) forget_error();
  close_handle(handle);
  return found;
}

// The last object that was loaded before any dlopen of the program's; objects are linked in the order of loading.
const link_map* last_at_start = nullptr;
__attribute__((constructor)) void remember_the_start() {
  const link_map* map = _r_debug.r_map;
  while (map != nullptr && map->l_next != nullptr) map = map->l_next;
  last_at_start = map;
}

}  // namespace

DlsymFunction real_dlsym() { return find_once(dlsym_cache, "dlsym"); }
DlvsymFunction real_dlvsym() { return find_once(dlvsym_cache, "dlvsym"); }
DlopenFunction real_dlopen() { return find_once(dlopen_cache, "dlopen"); }

void forget_error() { find_once(dlerror_cache, "dlerror")(); }

void* handle_if_loaded(const char* soname) {
  const int saved = errno;
  void* handle = real_dlopen()(soname, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) forget_error();
  errno = saved;
  return handle;
}

void* load_library(const char* soname) {
  const int saved = errno;
  void* handle = real_dlopen()(soname, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) forget_error();
  errno = saved;
  return handle;
}

const link_map* map_of(const void* address) {
  if (address == nullptr) return nullptr;
  PlaceSearch search{reinterpret_cast<ElfW(Addr)>(address), nullptr};
  dl_iterate_phdr(visit_place, &search);
  return search.found;
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
