// A pool's figure is the driver's at every rest, though the driver is asked only where the pool may have grown.
#include <fstream>

#include "tests/e2e/world.h"

namespace gpucap::e2e {
namespace {

class PoolGrowth : public World {
 protected:
  [[nodiscard]] int asked() const {
    std::ifstream log(folder_ + "/calls");
    int count = 0;
    for (std::string line; std::getline(log, line);) count += line.rfind("cuMemPoolGetAttribute ", 0) == 0;
    return count;
  }
  // The figures at the program's next rest.
  void at_rest(Child& child, const char* step, uint64_t pool_bytes) {
    SCOPED_TRACE(step);
    child.out.clear();
    if (started_) child.tell("\n");
    started_ = true;
    ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
    expect_true_figures(child.pid);
    if (pool_bytes == kAny) return;
    EXPECT_EQ(segment(child.pid).devices[0].gauges.pool_bytes, static_cast<int64_t>(pool_bytes));
  }
  static constexpr uint64_t kAny = UINT64_MAX;
  bool started_ = false;
};

TEST_F(PoolGrowth, FiguresAreTrueAtEveryRestAndTheDriverIsSeldomAsked) {
  Environment environment = capped("8G");
  environment["FAKE_CUDA_LOG"] = folder_ + "/calls";
  Child child({POOL_GROWTH_PROGRAM}, environment);
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
  child.tell("\n");
  EXPECT_EQ(child.finish(), 0);
  EXPECT_EQ(child.err, "");
}

}  // namespace
}  // namespace gpucap::e2e
