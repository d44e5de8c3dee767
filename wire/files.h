// The few file-system verbs that the writer's half and the reader share: the segment's name, the directory walk, the
// record lock. Called from the shim (no exceptions, no malloc, nothing newer than glibc 2.17) and from the tools.
// Never follows a link below the directory, never changes umask or working directory. errno is left as the kernel set
// it.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>

namespace gpucap::wire {

// Restores errno: our work must not show in the program that we are a guest of.
class ErrnoGuard {
 public:
  ErrnoGuard();
  ~ErrnoGuard();
  ErrnoGuard(const ErrnoGuard&) = delete;
  ErrnoGuard& operator=(const ErrnoGuard&) = delete;

 private:
  int saved_;
};

// A segment's identity as its file name spells it: "<pid>.<16 hex digits>.gpucap", and with a leading dot and a
// trailing ".tmp" while it is being built. Parsing accepts only what format_name() would have written.
struct SegmentName {
  static constexpr size_t kMaxBytes = 64;
  uint32_t pid = 0;
  uint64_t created_realtime_ns = 0;
  bool temporary = false;
};
bool parse_name(const char* text, SegmentName* name);
void format_name(const SegmentName& name, char (&text)[SegmentName::kMaxBytes]);

// fstat and its like by system call: glibc before 2.33 has no such symbols to link with.
int stat_descriptor(int fd, struct stat* status);
int stat_entry(int directory_fd, const char* name, struct stat* status);  // of a link, not of what it points to

// Walks the names of a directory without malloc. The descriptor's position is the walk's position.
class DirectoryWalk {
 public:
  explicit DirectoryWalk(int directory_fd) : fd_(directory_fd) {}
  void rewind();
  const char* next();  // nullptr at the end or on an error; valid until the next call

 private:
  int fd_;
  long filled_ = 0;
  long used_ = 0;
  alignas(8) char buffer_[2048];
};

// The lock on byte 0 that means "the writer lives". A POSIX record lock: dropped by the kernel at death, not inherited
// by fork, and lost when the owner closes any descriptor of the file.
bool take_life_lock(int fd);
struct LifeLock {
  bool held = false;
  int holder_pid = 0;  // in the caller's PID namespace; 0 if the holder cannot be seen from it
};
LifeLock query_life_lock(int fd);  // a lock of the calling process itself is never reported

uint64_t monotonic_now_ns();
uint64_t realtime_now_ns();
uint64_t own_pid_namespace();  // 0 if unknown

// Field 22 of /proc/<pid>/stat, with the state letter. False if there is no such process or /proc cannot be read.
bool read_start_ticks(uint32_t pid, uint64_t* start_ticks, char* state);

// Whether the process that started then still has a thread. Its first one may be a zombie long before: while the last
// of the others closes the driver's files, the card still has the memory.
bool process_has_threads(uint32_t pid, uint64_t start_ticks);

}  // namespace gpucap::wire
