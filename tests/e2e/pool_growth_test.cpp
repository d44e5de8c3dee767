// A pool's figure is the driver's at every rest, though the driver is asked only where the pool may have grown.
#include <chrono>

#include "tests/e2e/stepped_world.h"

namespace gpucap::e2e {
namespace {

class PoolGrowth : public SteppedWorld {
 protected:
  [[nodiscard]] int asked() const { return calls("cuMemPoolGetAttribute "); }
  [[nodiscard]] int looks() const { return calls("nvmlDeviceGetComputeRunningProcesses"); }
  // The figures at the program's next rest.
  void at_rest(Child& child, const char* name, uint64_t pool_bytes) {
    step(child, name);
    if (HasFatalFailure() || pool_bytes == kAny) return;
    SCOPED_TRACE(name);
    EXPECT_EQ(segment(child.pid).devices[0].gauges.pool_bytes, static_cast<int64_t>(pool_bytes));
  }
  static constexpr uint64_t kAny = UINT64_MAX;
  Environment with_log_off(const std::string& limit) {
    Environment environment = capped(limit);
    environment["GPUCAP_LOG"] = "off";
    return environment;
  }
};

TEST_F(PoolGrowth, FiguresAreTrueAtEveryRestAndTheDriverIsSeldomAsked) {
  Child child({POOL_GROWTH_PROGRAM}, logged("8G"));
  at_rest(child, "two steps", 64 * kMiB);
  at_rest(child, "a block that was not there before", 64 * kMiB);
  int before = asked();
  at_rest(child, "the same again and again", 64 * kMiB);
  EXPECT_LT(asked() - before, 300) << "of 1000 allocations within what is there; looks may ask, too";
  at_rest(child, "all of it went back", 0);
  at_rest(child, "where it had been before, but anew", 32 * kMiB);
  // Of 200 steps each: time passes meanwhile, and looks are due, which ask as well.
  at_rest(child, "kept", 64 * kMiB);
  before = asked();
  int looks_before = looks();
  at_rest(child, "kept each time", 64 * kMiB);
  const int looked = looks() - looks_before;
  EXPECT_LT(asked() - before, 200 + 800 / 4 + 2 * looked) << "once a synchronise, and for few of 800 blocks";
  at_rest(child, "went back, though nothing was freed since the last time", 0);
  for (const char* name : {"went back each time", "trimmed each time"}) {
    const auto began = std::chrono::steady_clock::now();
    looks_before = looks();
    at_rest(child, name, 0);
    const auto took = std::chrono::steady_clock::now() - began;
    EXPECT_LT(looks() - looks_before, 10 + took / std::chrono::milliseconds(10)) << "what goes back is known: " << name;
  }
  at_rest(child, "moved", 96 * kMiB);
  at_rest(child, "where the first was before, but anew", 128 * kMiB);
  at_rest(child, "one block outlives its pool", kAny);
  at_rest(child, "none does", 0);
  at_rest(child, "four threads, at rest", kAny);
  at_rest(child, "all given back", 0);
  last_step(child);
}

// The driver moves a pool's free memory about, so where a block lies does not say whether it took something.
TEST_F(PoolGrowth, NothingIsTakenUnseenWhereFreeMemoryMoves) {
  Child child({POOL_GROWTH_PROGRAM, "to-the-cap"}, with_log_off("4G"));
  at_rest(child, "moved just below the cap", 0);
  EXPECT_LE(truth(child.pid).peak, 4 * kGiB) << "not by one byte";
  at_rest(child, "one thread", kAny);
  EXPECT_LE(truth(child.pid).peak, 4 * kGiB);
  EXPECT_GT(truth(child.pid).peak, 3 * kGiB) << "the cap was reached";
  EXPECT_GT(segment(child.pid).devices[0].gauges.refused_count, 10u);
  at_rest(child, "four threads", kAny);
  EXPECT_LE(truth(child.pid).peak, 4 * kGiB);
  last_step(child);
}

}  // namespace
}  // namespace gpucap::e2e
