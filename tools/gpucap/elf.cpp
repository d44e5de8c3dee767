// What kind of program a file is: see elf.h.
#include "tools/gpucap/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace gpucap::tools {
namespace {

constexpr size_t kMostProgramHeaders = 1024;
constexpr size_t kLongestLoaderPath = 4096;

bool read_at(int fd, void* to, size_t bytes, uint64_t offset) {
  return pread(fd, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

void read_script_line(const std::string& head, ProgramFacts* facts) {
  const std::string line = trimmed(head.substr(2, head.find('\n') - 2));
  const size_t end = line.find_first_of(" \t");
  facts->script_program = line.substr(0, end);
  if (end != std::string::npos) facts->script_argument = trimmed(line.substr(end));
}

void read_loader(int fd, ProgramFacts* facts) {
  Elf64_Ehdr header;
  if (!read_at(fd, &header, sizeof(header), 0) || header.e_phentsize != sizeof(Elf64_Phdr)) return;
  for (size_t i = 0; i < header.e_phnum && i < kMostProgramHeaders; ++i) {
    Elf64_Phdr segment;
    if (!read_at(fd, &segment, sizeof(segment), header.e_phoff + i * sizeof(segment))) return;
    if (segment.p_type != PT_INTERP || segment.p_filesz == 0 || segment.p_filesz > kLongestLoaderPath) continue;
    std::string path(segment.p_filesz, '\0');
    if (read_at(fd, path.data(), path.size(), segment.p_offset)) facts->loader = path.c_str();  // up to its NUL
    return;
  }
}

}  // namespace

bool inspect_program(const std::string& path, ProgramFacts* facts) {
  *facts = {};
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  std::array<char, 512> buffer;
  const ssize_t got = pread(fd, buffer.data(), buffer.size(), 0);
  if (got < 0) {
    const int error_number = errno;
    close(fd);
    errno = error_number;
    return false;
  }
  const std::string head(buffer.data(), static_cast<size_t>(got));
  if (head.size() > EI_CLASS && std::memcmp(head.data(), ELFMAG, SELFMAG) == 0) {
    facts->kind = ProgramFacts::Kind::kElf;
    facts->is_64_bit = head[EI_CLASS] == ELFCLASS64;
    if (head.size() >= offsetof(Elf64_Ehdr, e_version)) {
      std::memcpy(&facts->machine, head.data() + offsetof(Elf64_Ehdr, e_machine), sizeof(facts->machine));
    }
    if (facts->is_64_bit) read_loader(fd, facts);
  } else if (head.compare(0, 2, "#!") == 0) {
    facts->kind = ProgramFacts::Kind::kScript;
    read_script_line(head, facts);
  } else if (!head.empty() && head.find('\0') == std::string::npos) {
    facts->kind = ProgramFacts::Kind::kPlainText;
  }
  close(fd);
  return true;
}

}  // namespace gpucap::tools
