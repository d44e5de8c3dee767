#include "shim/process/thread_words.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace gpucap {

constinit thread_local ThreadWords thread_words = {};

namespace {

// Who has each lane: how often it was given out in the high half, the thread's id in the low half; 0: nobody yet.
std::atomic<uint64_t> owners[kLanes];
std::atomic<uint32_t> highest_lane{0};

bool is_gone(uint32_t thread) {
  return syscall(SYS_tgkill, getpid(), static_cast<pid_t>(thread), 0) != 0 && errno == ESRCH;
}

uint32_t take_lane(uint32_t self) {
  for (const bool of_the_dead : {false, true}) {
    for (uint32_t lane = kSharedLane + 1; lane < kLanes; ++lane) {
      uint64_t owner = owners[lane].load(std::memory_order_acquire);
      const auto thread = static_cast<uint32_t>(owner);
      // A lane under our own id is of a thread that died, and whose number we got.
      const bool mine = thread == 0 || thread == self || (of_the_dead && is_gone(thread));
      const uint64_t given = (owner & ~uint64_t{UINT32_MAX}) + (uint64_t{1} << 32);
      // Acquire: what the one before wrote to the lane is there.
      if (!mine || !owners[lane].compare_exchange_strong(owner, given | self, std::memory_order_acq_rel)) continue;
      uint32_t highest = highest_lane.load(std::memory_order_relaxed);
      while (highest < lane && !highest_lane.compare_exchange_weak(highest, lane, std::memory_order_relaxed)) {
      }
      return lane;
    }
  }
  return kSharedLane;
}

}  // namespace

uint32_t lanes_given() { return highest_lane.load(std::memory_order_relaxed); }

void set_up_thread() {
  const int saved = errno;
  const auto self = static_cast<uint32_t>(syscall(SYS_gettid));
  thread_words.lane = take_lane(self);
  thread_words.calls_until_timed = 1;
  thread_words.id = self;
  errno = saved;
}

}  // namespace gpucap
