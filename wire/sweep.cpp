// The sweep: see sweep.h. Runs in the shim (no malloc, no exceptions) and in the tools; keeps nothing between calls.
#include "wire/sweep.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/files.h"
#include "wire/group_life.h"
#include "wire/layout.h"
#include "wire/liveness.h"

namespace gpucap::wire {
namespace {

constexpr uint32_t kMostExamined = 256;
constexpr uint32_t kMostGroups = 32;  // a call

struct DeadSegment {
  SegmentName name;
  uint64_t died_realtime_ns;
};

class Sweeper {
 public:
  Sweeper(int directory_fd, const SweepRules& rules) : directory_fd_(directory_fd), rules_(rules) {}

  SweepResult run() {
    const uint32_t limit = rules_.examine_at_most < kMostExamined ? rules_.examine_at_most : kMostExamined;
    DirectoryWalk walk(directory_fd_);
    const uint64_t total = count_segments(walk);
    // Where there are more than one call may examine, start anywhere: the same first ones must not shield the others.
    const uint64_t first = total > limit ? (now_ns_ >> 10) % total : 0;
    for (uint64_t skip_below = first, skip_from = total;; skip_from = first, skip_below = 0) {
      examine_stretch(walk, skip_below, skip_from, limit);
      if (skip_below == 0) break;
    }
    // Of a stretch, its share: what one call may examine must not decide how many stay.
    sweep_groups(walk);
    remove_surplus(total > limit ? uint64_t{rules_.keep_dead} * result_.examined / total : rules_.keep_dead);
    return result_;
  }

 private:
  static uint64_t count_segments(DirectoryWalk& walk) {
    uint64_t count = 0;
    SegmentName name;
    walk.rewind();
    while (const char* text = walk.next()) count += parse_name(text, &name) ? 1 : 0;
    return count;
  }

  // A group that nobody lives in has nothing that anybody would still read.
  void sweep_groups(DirectoryWalk& walk) {
    uint32_t examined = 0;
    walk.rewind();
    while (const char* text = walk.next()) {
      if (!is_group_file_name(text)) continue;
      if (++examined > kMostGroups) return;
      if (sweep_group(directory_fd_, text)) ++result_.removed;
    }
  }

  void examine_stretch(DirectoryWalk& walk, uint64_t from, uint64_t to, uint32_t limit) {
    SegmentName name;
    uint64_t index = 0;
    walk.rewind();
    while (const char* text = walk.next()) {
      if (!parse_name(text, &name)) continue;
      if (index >= to || result_.examined >= limit) return;
      if (index++ >= from) examine(text, name);
    }
  }

  void examine(const char* text, const SegmentName& name) {
    ++result_.examined;
    struct stat status;
    if (stat_entry(directory_fd_, text, &status) != 0 || !S_ISREG(status.st_mode)) return;
    // Opening and closing a segment of our own process would drop its lock.
    if (name.pid == static_cast<uint32_t>(getpid()) && process_maps_inode(name.pid, status.st_ino)) return;
    // O_NONBLOCK: whatever may have taken the name meanwhile, the open must not wait.
    const int fd = openat(directory_fd_, text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return;
    if (stat_descriptor(fd, &status) == 0 && S_ISREG(status.st_mode)) {
      if (name.temporary) {
        examine_temporary(fd, text, status);
      } else {
        examine_segment(fd, text, name, status);
      }
    }
    close(fd);
  }

  void examine_temporary(int fd, const char* text, const struct stat& status) {
    if (age_ns(time_ns(status.st_mtim)) > rules_.keep_temporary_ns && !query_life_lock(fd).held) remove(text);
  }

  void examine_segment(int fd, const char* text, const SegmentName& name, const struct stat& status) {
    gpucap_header header = {};
    if (pread(fd, &header, sizeof(header), 0) != static_cast<ssize_t>(sizeof(header))) return;
    if (header.magic != GPUCAP_WIRE_MAGIC || header.major != GPUCAP_WIRE_MAJOR) return;
    const bool found_dead_before = (status.st_mode & S_ISVTX) != 0;
    uint64_t died_ns = now_ns_;
    switch (examine_liveness(fd, header).liveness) {
      case Liveness::kAlive:
        if (found_dead_before) fchmod(fd, S_IRUSR | S_IWUSR);
        return;
      case Liveness::kEnded:
        died_ns = header.ended_realtime_ns;
        break;
      case Liveness::kKilled:
        if (found_dead_before) {
          died_ns = time_ns(status.st_mtim);
        } else {
          const struct timespec now[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
          if (futimens(fd, now) == 0) fchmod(fd, S_IRUSR | S_IWUSR | S_ISVTX);
        }
        break;
    }
    if (age_ns(died_ns) > rules_.keep_ns) {
      remove(text);
    } else {
      dead_[dead_count_++] = {name, died_ns};
    }
  }

  void remove_surplus(uint64_t keep) {
    while (dead_count_ > keep) {
      uint32_t oldest = 0;
      for (uint32_t i = 1; i < dead_count_; ++i) {
        if (dead_[i].died_realtime_ns < dead_[oldest].died_realtime_ns) oldest = i;
      }
      char text[SegmentName::kMaxBytes];
      format_name(dead_[oldest].name, text);
      remove(text);
      dead_[oldest] = dead_[--dead_count_];
    }
  }

  void remove(const char* text) {
    if (unlinkat(directory_fd_, text, 0) == 0) ++result_.removed;
  }

  static uint64_t time_ns(const struct timespec& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
  }
  [[nodiscard]] uint64_t age_ns(uint64_t then_ns) const { return now_ns_ > then_ns ? now_ns_ - then_ns : 0; }

  int directory_fd_;
  SweepRules rules_;
  uint64_t now_ns_ = realtime_now_ns();
  SweepResult result_;
  uint32_t dead_count_ = 0;
  DeadSegment dead_[kMostExamined];
};

}  // namespace

SweepResult sweep(int directory_fd, const SweepRules& rules) {
  const ErrnoGuard guard;
  return Sweeper(directory_fd, rules).run();
}

}  // namespace gpucap::wire
