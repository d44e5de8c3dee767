// A world with a program that goes step by step (steps.h), whose calls the fake driver and NVML write down.
#pragma once

#include "tests/e2e/world.h"

namespace gpucap::e2e {

class SteppedWorld : public World {
 protected:
  Environment logged(const std::string& limit) {
    Environment environment = capped(limit);
    environment["FAKE_CUDA_LOG"] = call_log();
    return environment;
  }
  // Lets it run up to its next rest, where the figures must be true.
  void step(Child& child, const char* name) {
    SCOPED_TRACE(name);
    child.out.clear();
    if (started_) child.tell("\n");
    started_ = true;
    ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
    expect_true_figures(child.pid);
  }
  void last_step(Child& child) {
    child.tell("\n");
    EXPECT_EQ(child.finish(), 0) << child.out;
    EXPECT_EQ(child.err, "");
  }

 private:
  bool started_ = false;
};

}  // namespace gpucap::e2e
