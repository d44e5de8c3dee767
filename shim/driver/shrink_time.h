// The times in which the driver may take memory back from pools: around calls that synchronise or trim, with what
// corrects the charges afterwards. Outside of them a release threshold lets it take nothing (as documented), so what is
// backed stays backed. A program without pools has nothing to lose by a synchronise, and pays one load.
#pragma once

#include <atomic>
#include <cstdint>

#include "shim/process/quota.h"

namespace gpucap::driver::pool {

// Names the stretch between two such times, or what is under way now: how many were started in the high half, how many
// are under way in the low half. The same word twice, and quiet, means that there was none in between.
using Epoch = uint64_t;
extern std::atomic<Epoch> shrink_times;
inline bool is_quiet(Epoch epoch) { return static_cast<uint32_t>(epoch) == 0; }

class ShrinkTime {
 public:
  ShrinkTime();
  ~ShrinkTime();
  ShrinkTime(const ShrinkTime&) = delete;
  ShrinkTime& operator=(const ShrinkTime&) = delete;

  // No look at NVML fell into it so far: none can have seen the memory gone and its charge still there.
  [[nodiscard]] bool unseen() const { return counted_ && !looked_since(looks_); }
  // Nobody else has been in such a time since it began, nor in a call that takes memory: a pool that is as large as it
  // was thought to be before is likely to have lost nothing.
  [[nodiscard]] bool undisturbed() const;
  // What was known before may be known after it.
  [[nodiscard]] Epoch before() const { return before_; }
  [[nodiscard]] Epoch after() const { return before_ + kOne - 1; }

 private:
  static constexpr Epoch kOne = (Epoch{1} << 32) | 1;
  struct Calls {
    uint64_t begun = 0;
    bool none_under_way = true;
  };
  static Calls calls();
  [[nodiscard]] bool alone() const;

  bool counted_;
  Epoch before_ = 0;
  Calls calls_;
  LookTimes looks_;
};

}  // namespace gpucap::driver::pool
