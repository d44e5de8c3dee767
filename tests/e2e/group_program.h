// What the parts of group_program share: the clock, and how long a thread has been ready to run without a processor.
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

struct DriverFunctions;

// Takes and gives from four threads until stdin closes; prints what it saw.
int stress(const DriverFunctions& f, unsigned seed);

inline uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

// Of one thread of this process: the second number in its schedstat.
class RunDelay {
 public:
  explicit RunDelay(long thread = syscall(SYS_gettid)) {
    char path[64];
    std::snprintf(path, sizeof(path), "/proc/self/task/%ld/schedstat", thread);
    fd_ = open(path, O_RDONLY | O_CLOEXEC);
  }
  ~RunDelay() {
    if (fd_ >= 0) close(fd_);
  }
  RunDelay(const RunDelay&) = delete;
  RunDelay& operator=(const RunDelay&) = delete;

  // 0 where the kernel does not tell.
  [[nodiscard]] uint64_t read_ns() const {
    char text[96];
    const ssize_t length = fd_ < 0 ? -1 : pread(fd_, text, sizeof(text) - 1, 0);
    if (length <= 0) return 0;
    text[length] = '\0';
    char* end = nullptr;
    std::strtoull(text, &end, 10);
    return std::strtoull(end, nullptr, 10);
  }

 private:
  int fd_ = -1;
};
