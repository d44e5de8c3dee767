// `gpucap check`, what a program started from here would meet: the library, the variables, the directory, NVML.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/common/format.h"
#include "tools/gpucap/check_command.h"
#include "tools/gpucap/library.h"
#include "tools/gpucap/nvml.h"
#include "tools/gpucap/preload_check.h"
#include "tools/gpucap/settings.h"

namespace gpucap::tools {
namespace {

constexpr const char* kSystemPreload = "/etc/ld.so.preload";
constexpr const char* kLibrary = "libgpucap.so";
constexpr uint64_t kRoomForFigures = uint64_t{4} << 20;  // a segment on a machine of 8 cards is well below

std::string read_text(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The entries of a preload list that name our library.
std::vector<std::string> ours_in(std::string list) {
  for (char& c : list) {
    if (c == ':' || c == '\t' || c == '\n') c = ' ';
  }
  std::vector<std::string> ours;
  std::istringstream words(list);
  for (std::string entry; words >> entry;) {
    if (entry.size() >= std::strlen(kLibrary) && entry.find(kLibrary) != std::string::npos) ours.push_back(entry);
  }
  return ours;
}

void check_library(Findings* findings) {
  std::string tried;
  const std::string library = find_library(&tried);
  if (library.empty()) {
    findings->fail("library", std::string(kLibrary) + " was not found (tried " + tried + ")");
    return;
  }
  // As a child of gpucap run would have it; this process starts nothing else afterwards.
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  const std::string before = environment("LD_PRELOAD");
  setenv("LD_PRELOAD", (before.empty() ? library : library + ":" + before).c_str(), 1);
  const auto refusal = check_preload(self, {self}, library);
  if (before.empty()) {
    unsetenv("LD_PRELOAD");
  } else {
    setenv("LD_PRELOAD", before.c_str(), 1);
  }
  if (refusal) {
    findings->fail("library", refusal->reason);
  } else {
    findings->ok("library", library + " can be loaded into programs here");
  }
}

void check_preloads(Findings* findings) {
  std::string where;
  const struct {
    const char* name;
    std::string list;
  } lists[] = {{"LD_PRELOAD", environment("LD_PRELOAD")}, {kSystemPreload, read_text(kSystemPreload)}};
  for (const auto& list : lists) {
    for (const std::string& entry : ours_in(list.list)) {
      const bool found = entry.find('/') == std::string::npos || access(entry.c_str(), R_OK) == 0;
      if (!found) {
        findings->fail("preload", std::string(list.name) + " names " + entry + ", which cannot be read (" +
                                      std::strerror(errno) + "): programs run uncapped");
        return;
      }
      where += (where.empty() ? "" : " and ") + std::string(list.name);
    }
  }
  findings->ok("preload", where.empty() ? "named in neither LD_PRELOAD nor /etc/ld.so.preload: only what gpucap run "
                                          "starts is under gpucap"
                                        : "every program started here is under gpucap, through " + where);
}

void check_variables(Findings* findings) {
  core::LimitRules rules;
  core::LimitRules group_rules;
  core::OnLimitValue on_limit;
  const auto judge = [&](const char* name, const std::string& value, const std::optional<std::string>& problem,
                         const std::string& if_unset) {
    if (problem) {
      findings->fail(name, *problem);
    } else {
      findings->ok(name, value.empty() ? if_unset : value);
    }
  };
  if (disabled_by_environment()) {
    findings->warn("GPUCAP_DISABLE", "is set: programs started here are not capped, unless the policy file says so");
  }
  const std::string limit = environment("GPUCAP_LIMIT");
  judge("GPUCAP_LIMIT", limit, problem_of_limit(limit, &rules), "not set: no cap from here, programs are watched");
  const std::string group = environment("GPUCAP_GROUP");
  const std::string group_limit = environment("GPUCAP_GROUP_LIMIT");
  if (!group.empty() || !group_limit.empty()) {
    const auto nameless = std::string("not set, but GPUCAP_GROUP_LIMIT is: name the group too");
    judge("GPUCAP_GROUP", group, group.empty() ? nameless : problem_of_group(group), "");
    judge("GPUCAP_GROUP_LIMIT", group_limit, problem_of_limit(group_limit, &group_rules),
          "not set: what the group's first member says holds");
  }
  const std::string text = environment("GPUCAP_ON_LIMIT");
  if (const auto problem = problem_of_on_limit(text, &on_limit)) {
    findings->warn("GPUCAP_ON_LIMIT", *problem + "; deny is used");
  } else {
    findings->ok("GPUCAP_ON_LIMIT", text.empty() ? "not set: deny" : text);
  }
}

// Makes a file as a program would, and takes the lock that says that it lives.
std::string trouble_with(const std::string& directory) {
  std::string path = directory + "/.check.XXXXXX";
  const int fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) return std::string("no file can be made in it: ") + std::strerror(errno);
  std::string trouble;
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  const int full = posix_fallocate(fd, 0, static_cast<off_t>(kRoomForFigures));
  if (full != 0) trouble = "no room for the figures of a program: " + std::string(std::strerror(full));
  if (fcntl(fd, F_SETLK, &lock) != 0)
    trouble = std::string("its file system has no record locks: ") + std::strerror(errno);
  unlink(path.c_str());
  close(fd);
  return trouble;
}

void check_directory(const CheckOptions& options, Findings* findings) {
  std::string directory = options.directory;
  if (directory.empty()) directory = environment("GPUCAP_DIR");
  const bool is_default = directory.empty();
  if (is_default) directory = "/dev/shm/gpucap-" + std::to_string(geteuid());
  if (directory.front() != '/') {
    findings->fail("directory", directory + " is not an absolute path: the library would use its default instead");
    return;
  }
  struct stat status = {};
  if (lstat(directory.c_str(), &status) != 0) {
    const std::string parent = std::filesystem::path(directory).parent_path().string();
    if (errno == ENOENT && access(parent.c_str(), W_OK) == 0) {
      findings->ok("directory", directory + " will be made by the first program");
    } else {
      findings->fail("directory", directory + ": " + std::strerror(errno) + ", and it cannot be made in " + parent);
    }
    return;
  }
  if (is_default && (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077) != 0)) {
    findings->fail("directory", directory + " must be a directory that is yours and closed to others");
    return;
  }
  const std::string trouble = trouble_with(directory);
  if (trouble.empty()) {
    findings->ok("directory", directory);
  } else {
    findings->fail("directory", directory + ": " + trouble);
  }
}

}  // namespace

void check_machine(const CheckOptions& options, Findings* findings) {
  check_library(findings);
  check_preloads(findings);
  check_variables(findings);
  check_directory(options, findings);
}

void check_nvml(Findings* findings) {
  Nvml nvml;
  std::string reason;
  if (!nvml.open(&reason)) {
    findings->warn("NVML", reason + "; without NVML only what programs ask for is counted, not what the driver takes");
    return;
  }
  const std::string version = nvml.driver_version();
  const std::vector<Card> cards = nvml.visible_cards(std::getenv("CUDA_VISIBLE_DEVICES"));
  findings->ok("NVML", "usable" + (version.empty() ? "" : ", driver " + version));
  if (cards.empty()) findings->warn("GPU", "none is visible here (CUDA_VISIBLE_DEVICES)");
  for (const Card& card : cards) {
    const std::string what = "GPU " + std::to_string(card.ordinal);
    const std::string which =
        card.name + " " + card.uuid + ", " + human_bytes(card.free_bytes) + " free of " + human_bytes(card.total_bytes);
    switch (nvml.process_figures(card)) {
      case Nvml::ProcessFigures::kGiven:
        findings->ok(what, which + ", figures per process");
        break;
      case Nvml::ProcessFigures::kNoProcess:
        findings->ok(what, which + ", no process on it now");
        break;
      case Nvml::ProcessFigures::kHidden:
      case Nvml::ProcessFigures::kUnknown:
        findings->warn(what, which + ", without figures per process: the driver's own share is an estimate");
        break;
    }
  }
}

}  // namespace gpucap::tools
