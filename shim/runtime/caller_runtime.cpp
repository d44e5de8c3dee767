#include "shim/runtime/caller_runtime.h"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>

#include "shim/loader/real_dl.h"

namespace gpucap::runtime {
namespace {

bool is_runtime_name(const char* name) { return strncmp(name, "libcudart", 9) == 0; }

const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// Which of the object's dependencies is a runtime; nullptr if none is.
const char* needed_runtime(const link_map& object) {
  const char* strings = nullptr;
  for (const ElfW(Dyn)* entry = object.l_ld; entry != nullptr && entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
  if (strings == nullptr) return nullptr;
  for (const ElfW(Dyn)* entry = object.l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag != DT_NEEDED) continue;
    const char* soname = strings + entry->d_un.d_val;
    if (is_runtime_name(soname)) return soname;
  }
  return nullptr;
}

}  // namespace

void* find_in_runtime(const char* soname, const char* name) {
  void* handle = loader::handle_if_loaded(soname);
  if (handle == nullptr) return nullptr;
  void* found = loader::real_dlsym()(handle, name);
  if (found == nullptr) loader::forget_error();
  return found;  // the handle's reference is kept: the function must stay valid
}

void* find_for_caller(const void* caller, const char* name) {
  const link_map* const object = loader::map_of(caller);
  if (object == nullptr) return nullptr;
  if (const char* soname = needed_runtime(*object)) {
    if (void* found = find_in_runtime(soname, name)) return found;
  }
  // Called through a pointer, from code without an entry of its own, or by a tail call: the first runtime there is.
  const link_map* first = object;
  while (first->l_prev != nullptr) first = first->l_prev;
  for (const link_map* other = first; other != nullptr; other = other->l_next) {
    if (other->l_name == nullptr || !is_runtime_name(base_name(other->l_name))) continue;
    if (void* found = find_in_runtime(other->l_name, name)) return found;
  }
  return nullptr;
}

}  // namespace gpucap::runtime
