#include "shim/process/policy_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "wire/files.h"

namespace gpucap {
namespace {

// The test build of the library takes another file, so that tests need not be root.
const char* policy_path() {
#ifdef GPUCAP_TEST_STEPS
  if (const char* path = getenv("GPUCAP_TEST_POLICY")) return path;
#endif
  return core::kPolicyPath;
}

// A file's content on pages of its own.
class Content {
 public:
  Content(const char* path, size_t at_most) : fd_(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    error_ = fd_ < 0 ? errno : 0;
    if (fd_ < 0) return;
    void* pages = mmap(nullptr, at_most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
      error_ = ENOMEM;
      return;
    }
    text_ = static_cast<char*>(pages);
    capacity_ = at_most;
    while (bytes_ < capacity_) {
      const ssize_t got = read(fd_, text_ + bytes_, capacity_ - bytes_);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) error_ = errno;
      if (got <= 0) break;
      bytes_ += static_cast<size_t>(got);
    }
  }
  ~Content() {
    if (text_ != nullptr) munmap(text_, capacity_);
    if (fd_ >= 0) close(fd_);
  }
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;

  [[nodiscard]] int error() const { return error_; }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] std::string_view text() const { return {text_, bytes_}; }

 private:
  int fd_;
  int error_ = 0;
  char* text_ = nullptr;
  size_t capacity_ = 0;
  size_t bytes_ = 0;
};

// Of /etc/passwd alone: asking the system's directories would run other people's code in the program. Empty: not there.
std::string_view user_name_in(std::string_view passwd, uint32_t uid) {
  char wanted[16];
  snprintf(wanted, sizeof(wanted), "%u", uid);
  while (!passwd.empty()) {
    const std::string_view line = passwd.substr(0, passwd.find('\n'));
    passwd.remove_prefix(line.size() < passwd.size() ? line.size() + 1 : line.size());
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const size_t third = line.find(':', second + 1);
    if (third != std::string_view::npos && line.substr(second + 1, third - second - 1) == wanted)
      return line.substr(0, first);
  }
  return {};
}

// In a user namespace that does not know root (a container without it), root's files seem to belong to this user.
constexpr uid_t kNobody = 65534;

bool is_initial_user_namespace() {
  const Content map("/proc/self/uid_map", 4096);
  size_t at = 0;
  const auto number = [&] {
    while (at < map.text().size() && map.text()[at] == ' ') ++at;
    uint64_t value = 0;
    for (; at < map.text().size() && map.text()[at] >= '0' && map.text()[at] <= '9'; ++at)
      value = value * 10 + static_cast<uint64_t>(map.text()[at] - '0');
    return value;
  };
  return number() == 0 && number() == 0 && number() == UINT32_MAX;
}

bool is_roots_alone(int fd) {
  struct stat status = {};
  if (wire::stat_descriptor(fd, &status) != 0 || (status.st_mode & 0022) != 0) return false;
#ifdef GPUCAP_TEST_STEPS
  if (status.st_uid == getuid()) return true;  // the file of a test that is not root
#endif
  return status.st_uid == 0 || (status.st_uid == kNobody && !is_initial_user_namespace());
}

constexpr size_t kMostOfPasswd = size_t{4} << 20;

}  // namespace

void read_policy_file(Config* config) {
  const char* path = policy_path();
  const Content file(path, core::kMaxPolicyBytes + 4096);
  if (file.error() == ENOENT || file.error() == ENOTDIR) return;
  if (file.error() != 0) {
    config->policy.closed = true;
    complain(config,
             "%s cannot be read (%s), so nothing is allowed. Until that is set right, no GPU context is given out",
             path, strerror(file.error()));
    return;
  }
  if (!is_roots_alone(file.fd())) {
    config->policy.closed = true;
    complain(config,
             "%s must belong to root and be writable by nobody else, or anybody may have written it. Until that is set "
             "right, no GPU context is given out",
             path);
    return;
  }
  const Content passwd("/etc/passwd", kMostOfPasswd);
  const uint32_t uid = getuid();
  core::read_policy(file.text(), {uid, user_name_in(passwd.text(), uid)}, &config->policy);
  if (config->group[0] != '\0' && config->policy.group[0] == '\0')
    core::read_group_policy(file.text(), config->group, &config->group_policy);
  const bool group_closed =
      config->policy.group[0] != '\0' ? config->policy.group_policy.closed : config->group_policy.closed;
  if (config->policy.closed || group_closed) {
    const core::PolicyProblem& why = config->policy.closed             ? config->policy.why_closed
                                     : config->policy.group[0] != '\0' ? config->policy.group_policy.why_closed
                                                                       : config->group_policy.why_closed;
    complain(config,
             "%s:%d:%d: '%s' %s. Until it is set right, no GPU context is given out (gpucap check shows it all)", path,
             why.line, why.column, why.part, why.reason == nullptr ? "cannot be read" : why.reason);
    config->policy.closed = true;
  }
}

}  // namespace gpucap
