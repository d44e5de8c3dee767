// What the members of the stress test leave for the test to read, whenever they are killed: a file that all of them
// map.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

struct StressRecord {
  std::atomic<uint64_t> calls, granted, refused, odd;
  std::atomic<uint64_t> longest_wall_ns;   // of one call
  std::atomic<uint64_t> longest_stall_ns;  // of it, the part in which no thread of the process waited for a processor
  std::atomic<uint64_t> longest_delay_ns;  // that such a thread waited for a processor while one call lasted
  std::atomic<uint64_t> joined;            // has a context
  std::atomic<uint64_t> gave_all;          // in the second phase
};

struct StressStats {
  static constexpr int kMembers = 1 << 16;
  std::atomic<int> phase;  // 0: take and give; 1: give all back, and wait; 2: end
  StressRecord members[kMembers];

  static StressStats* open_at(const char* path) {
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(StressStats)) != 0) return nullptr;
    void* const base = mmap(nullptr, sizeof(StressStats), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return base == MAP_FAILED ? nullptr : static_cast<StressStats*>(base);
  }
};

inline void raise_to(std::atomic<uint64_t>& word, uint64_t value) {
  uint64_t seen = word.load();
  while (seen < value && !word.compare_exchange_weak(seen, value)) {
  }
}
