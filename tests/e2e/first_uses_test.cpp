// A kernel's first use may load something and is looked at; each later one costs no question, and nothing that is
// loaded anew goes unseen because its name was known before.
#include "tests/e2e/stepped_world.h"

namespace gpucap::e2e {
namespace {

class FirstUses : public SteppedWorld {
 protected:
  [[nodiscard]] int looks() const { return calls("nvmlDeviceGetComputeRunningProcesses"); }
};

TEST_F(FirstUses, AreLookedAtAndLaterOnesCostNothing) {
  Environment environment = logged("4G");
  environment["GPUCAP_LOG"] = "off";
  Child child({FIRST_USES_PROGRAM}, environment);
  step(child, "first uses");
  int before = looks();
  EXPECT_GE(before, 3);
  // Time passes, and figures grow old: a look every 10 ms is due, and a slow machine takes a second for this.
  constexpr int kDue = 200;
  step(child, "a thousand kernels");
  EXPECT_LT(looks() - before, kDue);
  step(child, "a module");
  before = looks();
  step(child, "a thousand functions");
  EXPECT_LT(looks() - before, kDue);
  step(child, "unloaded and loaded anew");
  step(child, "launched between look-ups");
  step(child, "in another context");
  step(child, "in a context that was released and came back");
  step(child, "in a context that was reset and came back");
  step(child, "over the cap");
  step(child, "threads that use and unload");
  last_step(child);
}

}  // namespace
}  // namespace gpucap::e2e
