// From a command to its programs: see command.h.
#include "tools/gpucap/command.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "tools/gpucap/elf.h"

namespace gpucap::tools {
namespace {

constexpr int kDeepestScript = 4;  // the kernel's own bound on interpreters of interpreters

enum class Access { kYes, kMissing, kNotExecutable };

Access access_of(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return errno == EACCES ? Access::kNotExecutable : Access::kMissing;
  if (!S_ISREG(status.st_mode)) return Access::kNotExecutable;
  return faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? Access::kYes : Access::kNotExecutable;
}

Refusal not_executable(const std::string& name) {
  return {kExitNotExecutable, "'" + name + "' is not an executable file"};
}

// The program that `env` will run, out of its words in a "#!" line: options and assignments come first.
std::string target_of_env(const std::string& argument) {
  std::istringstream words(argument);
  for (std::string word; words >> word;) {
    if (word.compare(0, 2, "-S") == 0 && word.size() > 2) return word.substr(2);
    if (word == "-u" || word == "--unset" || word == "-C" || word == "--chdir") {
      words >> word;
      continue;
    }
    if (word[0] == '-' || word.find('=') != std::string::npos) continue;
    return word;
  }
  return "";
}

}  // namespace

std::optional<Refusal> find_command(const std::string& name, std::string* path) {
  if (name.empty()) return Refusal{kExitNotFound, "the command is empty"};
  if (name.find('/') != std::string::npos) {
    *path = name;
    switch (access_of(name)) {
      case Access::kYes:
        return std::nullopt;
      case Access::kNotExecutable:
        return not_executable(name);
      case Access::kMissing:
        return Refusal{kExitNotFound, "'" + name + "' does not exist"};
    }
  }
  const char* variable = std::getenv("PATH");
  std::istringstream folders(variable != nullptr ? variable : "/bin:/usr/bin");
  bool seen = false;
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    const Access access = access_of(candidate);
    if (access == Access::kYes) {
      *path = candidate;
      return std::nullopt;
    }
    struct stat status;
    seen =
        seen || (access == Access::kNotExecutable && stat(candidate.c_str(), &status) == 0 && S_ISREG(status.st_mode));
  }
  if (seen) return not_executable(name);
  return Refusal{kExitNotFound, "'" + name + "' was not found in PATH"};
}

std::optional<Refusal> programs_behind(const std::string& path, std::vector<std::string>* programs) {
  std::string current = path;
  for (int depth = 0; depth <= kDeepestScript; ++depth) {
    ProgramFacts facts;
    if (!inspect_program(current, &facts)) {
      return Refusal{kExitRefused,
                     "'" + current + "' cannot be read, so it cannot be checked (" + std::strerror(errno) + ")"};
    }
    if (facts.kind == ProgramFacts::Kind::kElf) {
      programs->push_back(current);
      return std::nullopt;
    }
    if (facts.kind == ProgramFacts::Kind::kPlainText) {
      current = "/bin/sh";  // as execvp does with a script that does not say
      continue;
    }
    if (facts.kind != ProgramFacts::Kind::kScript || facts.script_program.empty()) {
      return Refusal{kExitNotExecutable, "'" + current + "' is neither a program nor a script"};
    }
    switch (access_of(facts.script_program)) {
      case Access::kYes:
        break;
      case Access::kNotExecutable:
        return Refusal{kExitNotExecutable,
                       "'" + current + "': its interpreter " + facts.script_program + " is not executable"};
      case Access::kMissing:
        return Refusal{kExitNotFound, "'" + current + "': its interpreter " + facts.script_program + " does not exist"};
    }
    const size_t slash = facts.script_program.rfind('/');
    if (facts.script_program.substr(slash == std::string::npos ? 0 : slash + 1) != "env") {
      current = facts.script_program;
      continue;
    }
    programs->push_back(facts.script_program);
    const std::string target = target_of_env(facts.script_argument);
    if (target.empty()) return std::nullopt;
    if (auto refusal = find_command(target, &current)) return refusal;
  }
  return Refusal{kExitNotExecutable, "'" + path + "': too many interpreters behind one another"};
}

}  // namespace gpucap::tools
