#include "shim/loader/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace gpucap::loader {
namespace {

class File {
 public:
  explicit File(const char* path) : descriptor_(open(path, O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool read(ElfW(Off) offset, void* out, size_t bytes) const {
    return descriptor_ >= 0 &&
           pread(descriptor_, out, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
  }
  // A name of at most 63 characters; longer ones are cut, and are none that we look for.
  bool read_name(ElfW(Off) offset, char (&name)[64]) const {
    memset(name, 0, sizeof(name));
    return descriptor_ >= 0 && pread(descriptor_, name, sizeof(name) - 1, static_cast<off_t>(offset)) > 0;
  }

 private:
  int descriptor_;
};

bool is_cuda_library(const char* name) {
  return strncmp(name, "libcuda.so", 10) == 0 || strncmp(name, "libcudart", 9) == 0;
}
bool is_gpu_section(const char* name) {
  return strcmp(name, ".nv_fatbin") == 0 || strcmp(name, ".nvFatBinSegment") == 0;
}

bool has_gpu_section(const File& file, const ElfW(Ehdr) & header) {
  ElfW(Shdr) names;
  if (header.e_shentsize != sizeof(names) || header.e_shstrndx >= header.e_shnum) return false;
  if (!file.read(header.e_shoff + header.e_shstrndx * sizeof(names), &names, sizeof(names))) return false;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    ElfW(Shdr) section;
    char name[64];
    if (file.read(header.e_shoff + i * sizeof(section), &section, sizeof(section)) &&
        file.read_name(names.sh_offset + section.sh_name, name) && is_gpu_section(name))
      return true;
  }
  return false;
}

// The file offset of a virtual address, by the loaded parts.
bool offset_of(const File& file, const ElfW(Ehdr) & header, ElfW(Addr) address, ElfW(Off) * offset) {
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) part;
    if (!file.read(header.e_phoff + i * sizeof(part), &part, sizeof(part))) return false;
    if (part.p_type != PT_LOAD || address < part.p_vaddr || address >= part.p_vaddr + part.p_filesz) continue;
    *offset = part.p_offset + (address - part.p_vaddr);
    return true;
  }
  return false;
}

bool needs_cuda(const File& file, const ElfW(Ehdr) & header) {
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) part;
    if (!file.read(header.e_phoff + i * sizeof(part), &part, sizeof(part)) || part.p_type != PT_DYNAMIC) continue;
    const size_t count = part.p_filesz / sizeof(ElfW(Dyn));
    ElfW(Dyn) entry;
    ElfW(Off) strings = 0;
    bool found = false;
    for (size_t k = 0; k < count && file.read(part.p_offset + k * sizeof(entry), &entry, sizeof(entry)); ++k)
      if (entry.d_tag == DT_STRTAB) found = offset_of(file, header, entry.d_un.d_ptr, &strings);
    for (size_t k = 0; found && k < count && file.read(part.p_offset + k * sizeof(entry), &entry, sizeof(entry)); ++k) {
      char name[64];
      if (entry.d_tag == DT_NEEDED && file.read_name(strings + entry.d_un.d_val, name) && is_cuda_library(name))
        return true;
    }
  }
  return false;
}

}  // namespace

bool file_uses_cuda(const char* path) {
  const int saved = errno;
  bool uses = false;
  {
    const File file(path);
    ElfW(Ehdr) header;
    uses = file.read(0, &header, sizeof(header)) && memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
           header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_phentsize == sizeof(ElfW(Phdr)) &&
           (needs_cuda(file, header) || has_gpu_section(file, header));
  }
  errno = saved;
  return uses;
}

}  // namespace gpucap::loader
