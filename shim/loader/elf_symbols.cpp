#include "shim/loader/elf_symbols.h"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>

namespace gpucap::loader {
namespace {

struct Search {
  const char* name;
  const char* const* sonames;
  int soname_count;
  void* found;
};

struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const ElfW(Half) * versions = nullptr;
  const uint32_t* gnu_hash = nullptr;
  const uint32_t* old_hash = nullptr;
};

const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// The C library relocates these pointers in place on most machines, not on all.
template <typename T>
T at(ElfW(Addr) base, ElfW(Addr) value) {
  return reinterpret_cast<T>(value < base ? base + value : value);
}

Tables read_tables(const dl_phdr_info& info) {
  Tables tables;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* dynamic = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    for (; dynamic->d_tag != DT_NULL; ++dynamic) {
      const ElfW(Addr) value = dynamic->d_un.d_ptr;
      switch (dynamic->d_tag) {
        case DT_SYMTAB:
          tables.symbols = at<const ElfW(Sym)*>(info.dlpi_addr, value);
          break;
        case DT_STRTAB:
          tables.strings = at<const char*>(info.dlpi_addr, value);
          break;
        case DT_VERSYM:
          tables.versions = at<const ElfW(Half)*>(info.dlpi_addr, value);
          break;
        case DT_GNU_HASH:
          tables.gnu_hash = at<const uint32_t*>(info.dlpi_addr, value);
          break;
        case DT_HASH:
          tables.old_hash = at<const uint32_t*>(info.dlpi_addr, value);
          break;
        default:
          break;
      }
    }
  }
  return tables;
}

// How many symbols there are: said by DT_HASH, else by walking the last chain of DT_GNU_HASH.
uint32_t symbol_count(const Tables& tables) {
  if (tables.old_hash != nullptr) return tables.old_hash[1];
  if (tables.gnu_hash == nullptr) return 0;
  const uint32_t buckets = tables.gnu_hash[0], first = tables.gnu_hash[1], bloom_words = tables.gnu_hash[2];
  const auto* bloom = reinterpret_cast<const ElfW(Addr)*>(tables.gnu_hash + 4);
  const auto* bucket = reinterpret_cast<const uint32_t*>(bloom + bloom_words);
  const uint32_t* chain = bucket + buckets;
  uint32_t last = 0;
  for (uint32_t i = 0; i < buckets; ++i)
    if (bucket[i] > last) last = bucket[i];
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) ++last;
  return last + 1;
}

int visit(dl_phdr_info* info, size_t, void* argument) {
  auto* search = static_cast<Search*>(argument);
  const char* file = base_name(info->dlpi_name);
  bool wanted = false;
  for (int i = 0; i < search->soname_count; ++i)
    wanted = wanted || strncmp(file, search->sonames[i], strlen(search->sonames[i])) == 0;
  if (!wanted) return 0;
  const Tables tables = read_tables(*info);
  if (tables.symbols == nullptr || tables.strings == nullptr) return 0;
  const uint32_t count = symbol_count(tables);
  for (uint32_t i = 0; i < count; ++i) {
    const ElfW(Sym)& symbol = tables.symbols[i];
    const bool hidden_version = tables.versions != nullptr && (tables.versions[i] & 0x8000) != 0;
    if (symbol.st_shndx == SHN_UNDEF || (symbol.st_info & 0xf) != STT_FUNC || hidden_version) continue;
    if (strcmp(tables.strings + symbol.st_name, search->name) != 0) continue;
    search->found = reinterpret_cast<void*>(info->dlpi_addr + symbol.st_value);
    return 1;
  }
  return 0;
}

}  // namespace

void* find_in_loaded_object(const char* name, const char* const* sonames, int soname_count) {
  Search search{name, sonames, soname_count, nullptr};
  dl_iterate_phdr(visit, &search);
  return search.found;
}

}  // namespace gpucap::loader
