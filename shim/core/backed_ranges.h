// The addresses of a pool that were backed by memory when a block lay there, so that a block which lies among them is
// not likely to have made the pool grow. No proof: the driver moves a pool's free memory to other addresses when a
// block needs it there. What is known ends where the driver may take memory back; such times are counted by the owner
// as epochs.
//
// holds() is for any thread and takes no lock; add() and forget() are for one thread at a time. Zero bytes know
// nothing.
#pragma once

#include <atomic>
#include <cstdint>

namespace gpucap::core {

class BackedRanges {
 public:
  // Memory is mapped in pages of this size (aligned to it), so that a block's last page is backed to its end.
  static constexpr uint64_t kPage_bytes = uint64_t{2} << 20;
  static constexpr int kMost = 8;

  // Whether all of [address, address + bytes) was backed in that epoch. May say no for a moment while
  // another thread adds.
  [[nodiscard]] bool holds(uint64_t address, uint64_t bytes, uint64_t epoch) const {
    const uint32_t before = version_.load(std::memory_order_acquire);
    bool found = false;
    if ((before & 1) == 0 && epoch_.load(std::memory_order_relaxed) == epoch) {
      const int count = count_.load(std::memory_order_relaxed);
      for (int i = 0; i < count && !found; ++i)
        found = address >= ranges_[i].first.load(std::memory_order_relaxed) &&
                address + bytes <= ranges_[i].end.load(std::memory_order_relaxed);
    }
    std::atomic_thread_fence(std::memory_order_acquire);  // pairs with the release fence in begin_change
    return found && version_.load(std::memory_order_relaxed) == before;
  }

  void add(uint64_t address, uint64_t bytes, uint64_t epoch) {
    uint64_t first = address / kPage_bytes * kPage_bytes;
    uint64_t end = (address + bytes + kPage_bytes - 1) / kPage_bytes * kPage_bytes;
    begin_change();
    int count = epoch_.load(std::memory_order_relaxed) == epoch ? count_.load(std::memory_order_relaxed) : 0;
    // Whatever touches or overlaps becomes one with it.
    for (int i = 0; i < count;) {
      const uint64_t other_first = ranges_[i].first.load(std::memory_order_relaxed);
      const uint64_t other_end = ranges_[i].end.load(std::memory_order_relaxed);
      if (other_end < first || other_first > end) {
        ++i;
        continue;
      }
      if (other_first < first) first = other_first;
      if (other_end > end) end = other_end;
      --count;
      set(i, ranges_[count].first.load(std::memory_order_relaxed), ranges_[count].end.load(std::memory_order_relaxed));
    }
    const int place = count < kMost ? count++ : smallest();  // what is forgotten is only asked for again
    set(place, first, end);
    count_.store(count, std::memory_order_relaxed);
    epoch_.store(epoch, std::memory_order_relaxed);
    end_change();
  }

  // How much is known; for the thread that changes it.
  [[nodiscard]] uint64_t known_bytes() const {
    uint64_t bytes = 0;
    for (int i = 0; i < count_.load(std::memory_order_relaxed); ++i) bytes += length(i);
    return bytes;
  }

  // What is known in an epoch is known in a later one, too: the owner saw nothing go in between.
  void carry_over(uint64_t from, uint64_t to) {
    if (epoch_.load(std::memory_order_relaxed) != from) return;
    begin_change();
    epoch_.store(to, std::memory_order_relaxed);
    end_change();
  }

  void forget() {
    begin_change();
    count_.store(0, std::memory_order_relaxed);
    end_change();
  }

 private:
  void set(int place, uint64_t first, uint64_t end) {
    ranges_[place].first.store(first, std::memory_order_relaxed);
    ranges_[place].end.store(end, std::memory_order_relaxed);
  }
  [[nodiscard]] int smallest() const {
    int place = 0;
    for (int i = 1; i < kMost; ++i)
      if (length(i) < length(place)) place = i;
    return place;
  }
  [[nodiscard]] uint64_t length(int place) const {
    return ranges_[place].end.load(std::memory_order_relaxed) - ranges_[place].first.load(std::memory_order_relaxed);
  }
  void begin_change() {
    version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
  }
  void end_change() { version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  std::atomic<uint32_t> version_{0};  // odd while it changes
  std::atomic<int32_t> count_{0};
  std::atomic<uint64_t> epoch_{0};
  struct Range {
    std::atomic<uint64_t> first{0};
    std::atomic<uint64_t> end{0};
  };
  Range ranges_[kMost];
};

}  // namespace gpucap::core
