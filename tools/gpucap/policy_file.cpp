// The policy file: see policy_file.h.
#include "tools/gpucap/policy_file.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace gpucap::tools {
namespace {

constexpr uid_t kNobody = 65534;

bool knows_every_user() {
  std::ifstream map("/proc/self/uid_map");
  uint64_t inside = 1;
  uint64_t outside = 1;
  uint64_t count = 0;
  map >> inside >> outside >> count;
  return inside == 0 && outside == 0 && count == UINT32_MAX;
}

// In a container that does not know root, root's files seem to be nobody's.
bool is_roots(const struct stat& status) {
  return status.st_uid == 0 || (status.st_uid == kNobody && !knows_every_user());
}

// Of /etc/passwd alone, since the library asks nobody else.
std::string user_name_of(uint32_t uid) {
  std::string name;
  FILE* file = std::fopen("/etc/passwd", "re");
  if (file == nullptr) return name;
  while (const passwd* entry = fgetpwent(file)) {
    if (entry->pw_uid != uid) continue;
    name = entry->pw_name;
    break;
  }
  std::fclose(file);
  return name;
}

}  // namespace

PolicyFile read_policy_file(const std::string& path) {
  PolicyFile file;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    file.there = errno != ENOENT;
    if (file.there) file.problem = std::strerror(errno);
    return file;
  }
  file.there = true;
  struct stat status = {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    file.problem = "not a regular file";
  } else if (!is_roots(status) || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    file.problem = "must belong to root and be writable by root alone";
  }
  std::array<char, 65536> chunk;
  // One byte more than is allowed is enough for the parser to see that it is too long.
  while (file.problem != "not a regular file" && file.text.size() <= core::kMaxPolicyBytes) {
    const ssize_t got = read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) file.problem = std::strerror(errno);
    if (got <= 0) break;
    file.text.append(chunk.data(), static_cast<size_t>(got));
  }
  close(fd);
  return file;
}

std::unique_ptr<core::Policy> policy_of(const PolicyFile& file, uint32_t uid) {
  auto policy = std::make_unique<core::Policy>();
  const std::string name = user_name_of(uid);
  core::PolicyAsker asker;
  asker.uid = uid;
  asker.user_name = name;
  core::read_policy(file.text, asker, policy.get());
  return policy;
}

std::unique_ptr<core::GroupPolicy> policy_of_group(const PolicyFile& file, const std::string& group) {
  auto policy = std::make_unique<core::GroupPolicy>();
  core::read_group_policy(file.text, group, policy.get());
  return policy;
}

std::string policy_problem_text(const std::string& path, const core::PolicyProblem& problem) {
  return path + ":" + std::to_string(problem.line) + ":" + std::to_string(problem.column) + ": '" + problem.part +
         "' " + (problem.reason != nullptr ? problem.reason : "cannot be read");
}

}  // namespace gpucap::tools
