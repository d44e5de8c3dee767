// Liveness of a segment's writer: see liveness.h. Runs in the shim's sweep and in the tools; no malloc, no state.
#include "wire/liveness.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "wire/files.h"

namespace gpucap::wire {
namespace {

// Scans the lines of /proc/<pid>/maps ("range perms offset device inode path") for the inode. The device is left out:
// some file systems report another one there than fstat does, and the caller has matched the process already.
class InodeScanner {
 public:
  explicit InodeScanner(uint64_t inode) : inode_(inode) {}
  void feed(char c) {
    if (c == '\n') {
      found_ = found_ || line_matches();
      field_ = 0;
      value_ = 0;
    } else if (c == ' ') {
      if (field_ < kInodeField) value_ = 0;
      if (field_ <= kInodeField) ++field_;
    } else if (field_ == kInodeField) {
      value_ = value_ * 10 + static_cast<uint64_t>(c - '0');
    }
  }
  [[nodiscard]] bool found() const { return found_; }

 private:
  static constexpr int kInodeField = 4;
  [[nodiscard]] bool line_matches() const { return field_ >= kInodeField && value_ == inode_; }

  uint64_t inode_;
  uint64_t value_ = 0;
  int field_ = 0;
  bool found_ = false;
};

}  // namespace

Mapping mapping_of(uint32_t pid, uint64_t inode) {
  const ErrnoGuard guard;
  char path[40] = "/proc/";
  char digits[12];
  int count = 0;
  for (uint32_t rest = pid; rest != 0; rest /= 10) digits[count++] = static_cast<char>('0' + rest % 10);
  char* at = path + 6;
  while (count > 0) *at++ = digits[--count];
  memcpy(at, "/maps", 6);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ESRCH) return Mapping::kNothing;  // so say kernels from 6.15 on, the others read as empty
  if (fd < 0) return errno == ENOENT ? Mapping::kNo : Mapping::kUnknown;
  InodeScanner scanner(inode);
  char chunk[2048];
  Mapping answer = Mapping::kNothing;
  for (;;) {
    const ssize_t got = read(fd, chunk, sizeof(chunk));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != ESRCH) answer = Mapping::kUnknown;
    if (got <= 0) break;
    answer = Mapping::kNo;
    for (ssize_t i = 0; i < got; ++i) scanner.feed(chunk[i]);
    if (scanner.found()) {
      answer = Mapping::kYes;
      break;
    }
  }
  close(fd);
  return answer;
}

namespace {

// The program may have closed our descriptor, and the lock with it, while it runs on.
bool lives_without_lock(int fd, const gpucap_header& header) {
  struct stat status;
  if (header.pid == 0 || header.start_ticks == 0 || !process_has_threads(header.pid, header.start_ticks)) return false;
  if (stat_descriptor(fd, &status) != 0) return false;
  // Unknown (someone else's process) counts as alive: a segment in use must never be swept.
  const Mapping mapping = mapping_of(header.pid, status.st_ino);
  return mapping == Mapping::kYes || mapping == Mapping::kUnknown;
}

}  // namespace

LivenessAnswer examine_liveness(int fd, const gpucap_header& header) {
  const ErrnoGuard guard;
  const uint64_t here = own_pid_namespace();
  const bool same_namespace = here != 0 && header.pid_namespace == here;
  LivenessAnswer answer;
  if (same_namespace) answer.viewer_pid = static_cast<int>(header.pid);
  if (const LifeLock lock = query_life_lock(fd); lock.held) {
    answer.liveness = Liveness::kAlive;
    if (lock.holder_pid != 0) answer.viewer_pid = lock.holder_pid;
  } else if (header.state == GPUCAP_STATE_ENDED) {
    answer.liveness = Liveness::kEnded;
  } else if (same_namespace && lives_without_lock(fd, header)) {
    answer.liveness = Liveness::kAlive;
  }
  return answer;
}

bool process_maps_inode(uint32_t pid, uint64_t inode) { return mapping_of(pid, inode) == Mapping::kYes; }

const char* to_text(Liveness liveness) {
  switch (liveness) {
    case Liveness::kAlive:
      return "live";
    case Liveness::kEnded:
      return "ended";
    case Liveness::kKilled:
      return "killed";
  }
  return "unknown";
}

}  // namespace gpucap::wire
