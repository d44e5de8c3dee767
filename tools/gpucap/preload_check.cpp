// Whether the library can be loaded into a program: see preload_check.h.
#include "tools/gpucap/preload_check.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/gpucap/elf.h"
#include "tools/gpucap/probe_child.h"

namespace gpucap::tools {
namespace {

std::string base_name(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

bool is_glibc_loader(const std::string& path) {
  const std::string name = base_name(path);
  return name.compare(0, 8, "ld-linux") == 0 || name == "ld64.so.1" || name == "ld64.so.2";
}

// The loader ignores LD_PRELOAD where the kernel marks the start as privileged: when the program changes the user or
// the group, or gains capabilities from its file.
std::string privilege_of(const std::string& path) {
  struct stat status;
  struct statvfs system;
  if (stat(path.c_str(), &status) != 0) return "";
  if (statvfs(path.c_str(), &system) == 0 && (system.f_flag & ST_NOSUID) != 0) return "";
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return "";
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != getuid()) return "set-uid";
  const bool changes_group = (status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0;
  if (changes_group && status.st_gid != getgid()) return "set-gid";
  if (getuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) return "given file capabilities";
  return "";
}

std::optional<Refusal> check_program(const std::string& path, const std::vector<std::string>& arguments,
                                     const std::string& library, const ProgramFacts& library_facts) {
  const auto refused = [&](const std::string& why) {
    return Refusal{kExitRefused, "'" + path + "' cannot be capped: " + why};
  };
  ProgramFacts facts;
  if (!inspect_program(path, &facts)) return refused(std::string("it cannot be read (") + std::strerror(errno) + ")");
  if (!facts.is_64_bit) return refused("it is a 32-bit program");
  if (facts.machine != library_facts.machine) return refused("it is for another kind of processor than " + library);
  if (const std::string privilege = privilege_of(path); !privilege.empty()) {
    return refused("it is " + privilege + ", so the system ignores LD_PRELOAD for it");
  }
  ProbeAnswer answer;
  if (facts.loader.empty()) {
    // A loader that is called by name, with the program as its argument, is one more way to start a program.
    if (!is_glibc_loader(path)) return refused("it is statically linked, so no library can be loaded into it");
    answer = probe_loading(path, arguments, library);
  } else if (base_name(facts.loader).compare(0, 7, "ld-musl") == 0) {
    return refused("it is linked with musl, for which " + base_name(library) + " is not built");
  } else if (!is_glibc_loader(facts.loader)) {
    return refused("its loader " + facts.loader + " is not glibc's");
  } else if (access(facts.loader.c_str(), X_OK) != 0) {
    return Refusal{errno == ENOENT ? kExitNotFound : kExitNotExecutable,
                   "'" + path + "': its loader " + facts.loader + ": " + std::strerror(errno)};
  } else {
    answer = probe_loading(facts.loader, {path}, library);
  }
  if (!answer.loaded) return refused(library + " was not loaded: " + answer.reason);
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> check_preload(const std::string& path, const std::vector<std::string>& arguments,
                                     const std::string& library) {
  ProgramFacts library_facts;
  if (library.find_first_of(": ") != std::string::npos) {
    return Refusal{kExitRefused, "LD_PRELOAD cannot hold the path '" + library + "': it has a space or a colon"};
  }
  if (!inspect_program(library, &library_facts) || library_facts.kind != ProgramFacts::Kind::kElf ||
      !library_facts.is_64_bit) {
    return Refusal{kExitRefused, "'" + library + "' is not a library that can be loaded"};
  }
  std::vector<std::string> programs;
  if (auto refusal = programs_behind(path, &programs)) return refusal;
  for (const std::string& program : programs) {
    // The words belong to the command itself; a script's interpreter has others.
    std::vector<std::string> words;
    if (program == path) words.assign(arguments.begin() + 1, arguments.end());
    if (auto refusal = check_program(program, words, library, library_facts)) return refusal;
  }
  return std::nullopt;
}

}  // namespace gpucap::tools
