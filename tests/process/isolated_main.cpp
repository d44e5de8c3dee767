// Runs each case in a fresh image of this program, because the process object, like a real one, starts once and is
// never reset. CTest asks for one case at a time anyway; whoever starts the program by hand gets the same, and the same
// last lines as of any other program of GoogleTest.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

// Not /proc/self/exe, which under an emulator is the emulator.
const char* program = "process_test";

bool passes_alone(const std::string& name) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const std::string filter = "--gtest_filter=" + name;
    execl(program, program, filter.c_str(), "--gtest_brief=1", static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class OneCaseAnImage : public testing::EmptyTestEventListener {
  void OnTestProgramStart(const testing::UnitTest& all) override {
    if (all.test_to_run_count() <= 1) return;
    std::vector<std::string> failed;
    for (int s = 0; s < all.total_test_suite_count(); ++s) {
      const testing::TestSuite& suite = *all.GetTestSuite(s);
      for (int t = 0; t < suite.total_test_count(); ++t) {
        const testing::TestInfo& test = *suite.GetTestInfo(t);
        if (!test.should_run()) continue;
        const std::string name = std::string(suite.name()) + "." + test.name();
        if (!passes_alone(name)) failed.push_back(name);
      }
    }
    std::printf("[  PASSED  ] %d tests.\n", all.test_to_run_count() - static_cast<int>(failed.size()));
    if (failed.empty()) std::exit(0);
    std::printf("[  FAILED  ] %d tests, listed below:\n", static_cast<int>(failed.size()));
    for (const std::string& name : failed) std::printf("[  FAILED  ] %s\n", name.c_str());
    std::exit(1);
  }
};

}  // namespace

int main(int argc, char** argv) {
  program = argv[0];
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new OneCaseAnImage);
  return RUN_ALL_TESTS();
}
