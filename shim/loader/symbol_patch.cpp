#include "shim/loader/symbol_patch.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace gpucap::loader {
namespace {

uint32_t gnu_hash(const char* name) {
  uint32_t h = 5381;
  for (; *name != '\0'; ++name) h = h * 33 + static_cast<unsigned char>(*name);
  return h;
}

struct Tables {
  ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const uint32_t* hash = nullptr;
};

Tables tables_of(const link_map& object) {
  Tables tables;
  for (const ElfW(Dyn)* entry = object.l_ld; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    // glibc has made these absolute, except where the dynamic section cannot be written.
    const ElfW(Addr) value = entry->d_un.d_ptr < object.l_addr ? entry->d_un.d_ptr + object.l_addr : entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) tables.symbols = reinterpret_cast<ElfW(Sym)*>(value);
    if (entry->d_tag == DT_STRTAB) tables.strings = reinterpret_cast<const char*>(value);
    if (entry->d_tag == DT_GNU_HASH) tables.hash = reinterpret_cast<const uint32_t*>(value);
  }
  return tables;
}

ElfW(Sym) * find_symbol(const Tables& tables, const char* name) {
  const uint32_t buckets = tables.hash[0], first = tables.hash[1], bloom_words = tables.hash[2];
  const auto* bucket =
      reinterpret_cast<const uint32_t*>(reinterpret_cast<const ElfW(Addr)*>(tables.hash + 4) + bloom_words);
  const uint32_t* chain = bucket + buckets;
  const uint32_t wanted = gnu_hash(name);
  if (buckets == 0) return nullptr;
  for (uint32_t i = bucket[wanted % buckets]; i >= first; ++i) {
    const uint32_t here = chain[i - first];
    if ((here | 1) == (wanted | 1) && strcmp(tables.strings + tables.symbols[i].st_name, name) == 0)
      return &tables.symbols[i];
    if ((here & 1) != 0) break;
  }
  return nullptr;
}

// The protection of the page that holds the address, as /proc/self/maps would say; symbol tables are read-only, and in
// some libraries share a page with code.
int protection_of(const link_map& object, ElfW(Addr) address) {
  struct Search {
    ElfW(Addr) base, address;
    int protection;
  } search{object.l_addr, address, PROT_READ};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* argument) {
        auto* s = static_cast<Search*>(argument);
        if (info->dlpi_addr != s->base) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& part = info->dlpi_phdr[i];
          const ElfW(Addr) start = info->dlpi_addr + part.p_vaddr;
          if (part.p_type != PT_LOAD || s->address < start || s->address >= start + part.p_memsz) continue;
          s->protection =
              PROT_READ | ((part.p_flags & PF_X) != 0 ? PROT_EXEC : 0) | ((part.p_flags & PF_W) != 0 ? PROT_WRITE : 0);
          return 1;
        }
        return 0;
      },
      &search);
  return search.protection;
}

}  // namespace

bool point_symbol_at(void* library, const char* name, const void* function) {
  const auto& object =
      *static_cast<const link_map*>(library);  // what a handle is, by dlinfo's contract with RTLD_DI_LINKMAP
  const Tables tables = tables_of(object);
  if (tables.symbols == nullptr || tables.strings == nullptr || tables.hash == nullptr) return false;
  ElfW(Sym)* symbol = find_symbol(tables, name);
  if (symbol == nullptr || symbol->st_shndx == SHN_UNDEF) return false;
  const int saved = errno;
  const auto page_bytes = static_cast<ElfW(Addr)>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<ElfW(Addr)>(symbol);
  const ElfW(Addr) start = address & ~(page_bytes - 1);
  const size_t bytes = address + sizeof(*symbol) - start;
  const int protection = protection_of(object, address);
  const bool writable = mprotect(reinterpret_cast<void*>(start), bytes, protection | PROT_WRITE) == 0;
  if (writable) {
    // One store that no other look-up can see half of.
    __atomic_store_n(&symbol->st_value, reinterpret_cast<ElfW(Addr)>(function) - object.l_addr, __ATOMIC_RELEASE);
    mprotect(reinterpret_cast<void*>(start), bytes, protection);
  }
  errno = saved;
  return writable;
}

}  // namespace gpucap::loader
