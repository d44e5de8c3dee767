// A kernel's first use may load something and is looked at; each later one costs no question, and nothing that is
// loaded anew goes unseen because its name was known before.
#include <fstream>

#include "tests/e2e/world.h"

namespace gpucap::e2e {
namespace {

class FirstUses : public World {
 protected:
  [[nodiscard]] int looks() const {
    std::ifstream log(folder_ + "/calls");
    int count = 0;
    for (std::string line; std::getline(log, line);)
      count += line.rfind("nvmlDeviceGetComputeRunningProcesses", 0) == 0;
    return count;
  }
  void step(Child& child, const char* name) {
    SCOPED_TRACE(name);
    child.out.clear();
    if (started_) child.tell("\n");
    started_ = true;
    ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
    expect_true_figures(child.pid);
  }
  bool started_ = false;
};

TEST_F(FirstUses, AreLookedAtAndLaterOnesCostNothing) {
  Environment environment = capped("4G");
  environment["FAKE_CUDA_LOG"] = folder_ + "/calls";
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
  child.tell("\n");
  EXPECT_EQ(child.finish(), 0) << child.out;
  EXPECT_EQ(child.err, "");
}

}  // namespace
}  // namespace gpucap::e2e
