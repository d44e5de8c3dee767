// What kind of program a file is, read from its first bytes and program headers. Used before a program is started;
// trusts nothing in the file.
#pragma once

#include <cstdint>
#include <string>

namespace gpucap::tools {

struct ProgramFacts {
  enum class Kind { kElf, kScript, kPlainText, kOther };
  Kind kind = Kind::kOther;
  // ELF
  bool is_64_bit = false;
  uint16_t machine = 0;
  std::string loader;  // PT_INTERP; empty: statically linked, or a loader or library itself
  // "#!" line
  std::string script_program;
  std::string script_argument;  // all after the program, trimmed; may be empty
};

// False if the file cannot be read; errno says why.
bool inspect_program(const std::string& path, ProgramFacts* facts);

}  // namespace gpucap::tools
