// The file-system verbs of files.h: plain system calls, no malloc, no exceptions. Called from the shim's segment set-up
// and from the tools; holds no state.
#include "wire/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "wire/layout.h"

namespace gpucap::wire {

ErrnoGuard::ErrnoGuard() : saved_(errno) {}
ErrnoGuard::~ErrnoGuard() { errno = saved_; }

namespace {

// Appends to a fixed text; snprintf may allocate and depends on the locale, so it is not used in the guest.
char* append(char* at, const char* text) {
  const size_t length = strlen(text);
  memcpy(at, text, length + 1);
  return at + length;
}

char* append_decimal(char* at, uint64_t value) {
  char digits[20];
  int count = 0;
  do {
    digits[count++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (count > 0) *at++ = digits[--count];
  *at = '\0';
  return at;
}

// Reads a small file of /proc whole or cut; returns the bytes, or -1. NUL-terminates.
long read_small_file(const char* path, char* buffer, size_t capacity) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  size_t filled = 0;
  while (filled + 1 < capacity) {
    const ssize_t got = read(fd, buffer + filled, capacity - 1 - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    filled += static_cast<size_t>(got);
  }
  close(fd);
  buffer[filled] = '\0';
  return static_cast<long>(filled);
}

}  // namespace

bool parse_name(const char* text, SegmentName* name) {
  SegmentName parsed;
  const char* at = text;
  if (*at == '.') {
    parsed.temporary = true;
    ++at;
  }
  if (*at < '1' || *at > '9') return false;
  uint64_t pid = 0;
  while (*at >= '0' && *at <= '9' && pid <= UINT32_MAX) pid = pid * 10 + static_cast<uint64_t>(*at++ - '0');
  if (pid > UINT32_MAX || *at++ != '.') return false;
  for (int digit = 0; digit < 16; ++digit, ++at) {
    const bool decimal = *at >= '0' && *at <= '9';
    if (!decimal && (*at < 'a' || *at > 'f')) return false;
    parsed.created_realtime_ns =
        parsed.created_realtime_ns << 4 | static_cast<uint64_t>(decimal ? *at - '0' : *at - 'a' + 10);
  }
  parsed.pid = static_cast<uint32_t>(pid);
  if (strcmp(at, parsed.temporary ? GPUCAP_WIRE_SUFFIX ".tmp" : GPUCAP_WIRE_SUFFIX) != 0) return false;
  *name = parsed;
  return true;
}

void format_name(const SegmentName& name, char (&text)[SegmentName::kMaxBytes]) {
  char* at = text;
  if (name.temporary) *at++ = '.';
  at = append_decimal(at, name.pid);
  *at++ = '.';
  for (int shift = 60; shift >= 0; shift -= 4) *at++ = "0123456789abcdef"[name.created_realtime_ns >> shift & 15];
  at = append(at, GPUCAP_WIRE_SUFFIX);
  if (name.temporary) append(at, ".tmp");
}

int stat_descriptor(int fd, struct stat* status) { return static_cast<int>(syscall(SYS_fstat, fd, status)); }

int stat_entry(int directory_fd, const char* name, struct stat* status) {
  return static_cast<int>(syscall(SYS_newfstatat, directory_fd, name, status, AT_SYMLINK_NOFOLLOW));
}

void DirectoryWalk::rewind() {
  filled_ = used_ = 0;
  lseek(fd_, 0, SEEK_SET);
}

const char* DirectoryWalk::next() {
  struct Record {  // struct linux_dirent64 of getdents64(2), which glibc wraps only since 2.30
    uint64_t inode;
    int64_t offset;
    uint16_t bytes;
    uint8_t type;
    char name[1];
  };
  if (used_ >= filled_) {
    filled_ = syscall(SYS_getdents64, fd_, buffer_, sizeof(buffer_));
    used_ = 0;
    if (filled_ <= 0) return nullptr;
  }
  const char* record = buffer_ + used_;
  uint16_t bytes = 0;
  memcpy(&bytes, record + offsetof(Record, bytes), sizeof(bytes));
  used_ += bytes;
  return record + offsetof(Record, name);
}

bool take_life_lock(int fd) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return fcntl(fd, F_SETLK, &lock) == 0;
}

LifeLock query_life_lock(int fd) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  LifeLock answer;
  if (fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return answer;
  answer.held = true;
  answer.holder_pid = lock.l_pid > 0 ? lock.l_pid : 0;
  return answer;
}

namespace {
uint64_t clock_now_ns(clockid_t clock) {
  struct timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}
}  // namespace

uint64_t monotonic_now_ns() { return clock_now_ns(CLOCK_MONOTONIC); }
uint64_t realtime_now_ns() { return clock_now_ns(CLOCK_REALTIME); }

uint64_t own_pid_namespace() {
  struct stat status;
  // Follows the magic link on purpose: its target's inode is the namespace's number.
  if (syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &status, 0) != 0) return 0;
  return status.st_ino;
}

namespace {

struct ProcessStatus {
  char state = 0;
  uint64_t threads = 0;
  uint64_t start_ticks = 0;
};

bool read_status(uint32_t pid, ProcessStatus* status) {
  char path[40];
  append(append_decimal(append(path, "/proc/"), pid), "/stat");
  char text[1024];
  if (read_small_file(path, text, sizeof(text)) <= 0) return false;
  const char* at = strrchr(text, ')');  // the command in parentheses may hold anything, spaces and ')' too
  if (at == nullptr || at[1] != ' ' || at[2] == '\0') return false;
  at += 2;
  status->state = *at;
  for (int field = 3; field <= 22; ++field) {
    uint64_t value = 0;
    const char* digit = at;
    for (; *digit >= '0' && *digit <= '9'; ++digit) value = value * 10 + static_cast<uint64_t>(*digit - '0');
    if (field == 20) status->threads = value;
    if (field == 22) status->start_ticks = value;
    at = strchr(at, ' ');
    if (at == nullptr && field != 22) return false;
    if (at != nullptr) ++at;
  }
  return true;
}

}  // namespace

bool read_start_ticks(uint32_t pid, uint64_t* start_ticks, char* state) {
  ProcessStatus status;
  if (!read_status(pid, &status)) return false;
  *start_ticks = status.start_ticks;
  *state = status.state;
  return true;
}

bool process_has_threads(uint32_t pid, uint64_t start_ticks) {
  ProcessStatus status;
  if (!read_status(pid, &status) || status.start_ticks != start_ticks) return false;
  return (status.state != 'Z' && status.state != 'X') || status.threads > 1;
}

}  // namespace gpucap::wire
