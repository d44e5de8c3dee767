// A pool's figure is the driver's at every rest, though the driver is asked only where the pool may have grown.
#include "tests/e2e/stepped_world.h"

namespace gpucap::e2e {
namespace {

class PoolGrowth : public SteppedWorld {
 protected:
  [[nodiscard]] int asked() const { return calls("cuMemPoolGetAttribute "); }
  // The figures at the program's next rest.
  void at_rest(Child& child, const char* name, uint64_t pool_bytes) {
    step(child, name);
    if (HasFatalFailure() || pool_bytes == kAny) return;
    SCOPED_TRACE(name);
    EXPECT_EQ(segment(child.pid).devices[0].gauges.pool_bytes, static_cast<int64_t>(pool_bytes));
  }
  static constexpr uint64_t kAny = UINT64_MAX;
};

TEST_F(PoolGrowth, FiguresAreTrueAtEveryRestAndTheDriverIsSeldomAsked) {
  Child child({POOL_GROWTH_PROGRAM}, logged("8G"));
  at_rest(child, "two steps", 64 * kMiB);
  at_rest(child, "a block that was not there before", 64 * kMiB);
  const int before = asked();
  at_rest(child, "the same again and again", 64 * kMiB);
  EXPECT_LT(asked() - before, 300) << "of 1000 allocations within what is there; looks may ask, too";
  at_rest(child, "all of it went back", 0);
  at_rest(child, "where it had been before, but anew", 32 * kMiB);
  at_rest(child, "one block outlives its pool", kAny);
  at_rest(child, "none does", 0);
  at_rest(child, "four threads, at rest", kAny);
  at_rest(child, "all given back", 0);
  last_step(child);
}

}  // namespace
}  // namespace gpucap::e2e
