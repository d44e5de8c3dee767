// Plugins opened with RTLD_DEEPBIND look past preloaded libraries.
#include "tests/e2e/world.h"

namespace gpucap::e2e {
namespace {

TEST_F(World, PluginOpenedDeepIsCappedAndTold) {
  Child child({DEEPBIND_PROGRAM, DEEPBIND_PLUGIN}, capped("4G"));
  ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
  EXPECT_EQ(value_of(child.out, "result"), "2") << child.err;
  EXPECT_EQ(value_of(child.out, "taken"), "35");
  EXPECT_LE(truth(child.pid).peak, 4 * kGiB);
  expect_true_figures(child.pid);
  child.tell("\n");
  EXPECT_EQ(child.finish(), 0);
}

TEST_F(World, PluginOpenedDeepWithoutCudaBringsNoDriver) {
  Child child({DEEPBIND_PROGRAM, "libm.so.6"}, capped("4G"));
  EXPECT_EQ(child.finish(), 0);
  EXPECT_EQ(value_of(child.out, "driver"), "absent");
}

}  // namespace
}  // namespace gpucap::e2e
