// Ordinary and less ordinary ways of living and ending: threads that go, handlers that run at exit, libraries that are
// unloaded, daemons, children of all kinds. A run under gpucap must look to the program like one without.
#include <nlohmann/json.hpp>

#include "tests/e2e/life_world.h"

namespace gpucap::e2e {
namespace {

std::string content_of(const std::string& path) {
  std::string text;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char buffer[4096];
  for (ssize_t n; (n = read(file, buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<size_t>(n));
  close(file);
  return text;
}

class Life : public LifeWorld {
 protected:
  // The same program with and without; whatever it can see of itself must be the same.
  void expect_same(const std::vector<std::string>& command, int expected_status) {
    Child plain(command, bare());
    const int status = plain.finish();
    ASSERT_TRUE(WIFEXITED(status)) << "the test itself is broken: " << plain.out << plain.err;
    ASSERT_EQ(WEXITSTATUS(status), expected_status);
    Child child(command, capped("4G"));
    const pid_t pid = child.pid;
    EXPECT_EQ(child.finish(), status) << child.err;
    EXPECT_EQ(child.out, plain.out);
    EXPECT_EQ(child.err, "");
    const std::vector<SeenSegment> left = seen(pid);
    ASSERT_EQ(left.size(), 1u);
    EXPECT_EQ(left[0].liveness, wire::Liveness::kEnded);
  }
};

TEST_F(Life, CudaMayBeUsedInEveryHandlerAndDestructorAtTheEnd) { expect_same(program({"endings", LIFE_LIBRARY}), 42); }

TEST_F(Life, LibraryThatUsedCudaMayBeUnloaded) {
  Child child(program({"unload", LIFE_LIBRARY}), capped("4G"));
  ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
  EXPECT_NE(child.out.find("library's destructor: alloc 0 free 0"), std::string::npos) << child.out;
  EXPECT_NE(child.out.find("gone: 1"), std::string::npos) << child.out;
  EXPECT_NE(child.out.find("free what it took: 0"), std::string::npos) << child.out;
  expect_true_figures(child.pid);
  EXPECT_EQ(truth(child.pid).bytes, kContext + 4 * kMiB) << "what the library's destructor took is still there";
  EXPECT_EQ(child.finish(), 0);
  EXPECT_EQ(child.err, "");
}

TEST_F(Life, ExitWhileThreadsStillAllocateIsClean) {
  for (int i = 0; i < 15; ++i) {
    Child child(program({"churn"}), capped("4G"));
    const pid_t pid = child.pid;
    ASSERT_TRUE(child.wait_for("READY"));
    const int status = child.finish();
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status) << child.err;
    EXPECT_EQ(WEXITSTATUS(status), 5);
    ASSERT_EQ(seen(pid).size(), 1u);
    EXPECT_EQ(seen(pid)[0].liveness, wire::Liveness::kEnded);
  }
}

TEST_F(Life, ThreadsThatEndWhileOthersAllocateLeaveNothing) {
  Child child(program({"passing-threads"}), capped("8G"));
  ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
  EXPECT_EQ(value_of(child.out, "odd"), "0");
  expect_true_figures(child.pid);
  EXPECT_EQ(truth(child.pid).bytes, kContext);
  EXPECT_EQ(segment(child.pid).devices[0].live_count, 0);
  EXPECT_EQ(child.finish(), 0);
}

TEST_F(Life, DaemonThatClosedEveryDescriptorIsStillCappedAndSeenAlive) {
  Environment environment = capped("4G");
  environment["GPUCAP_LOG"] = "debug";
  const std::string data = folder_ + "/data";
  Child child(program({"daemon", data}), environment);
  ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
  const pid_t pid = static_cast<pid_t>(number(child.out, "pid"));
  EXPECT_NE(pid, child.pid);
  EXPECT_EQ(value_of(child.out, "result"), "2");
  EXPECT_LE(truth(pid).peak, 4 * kGiB);
  EXPECT_EQ(value_of(child.out, "kept"), "1") << "one of the program's descriptors became something else";
  EXPECT_EQ(content_of(data), "my own data\nthe end\n") << "the program's file holds what the program wrote";
  EXPECT_NE(child.err.find("refused cuMemAlloc_v2"), std::string::npos) << child.err;
  expect_true_figures(pid);
  std::vector<SeenSegment> left = seen(pid);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].liveness, wire::Liveness::kAlive);
  const auto living = nlohmann::json::parse(top({"--json"}));
  ASSERT_EQ(living.at("processes").size(), 1u);
  EXPECT_EQ(living.at("processes")[0].at("pid"), pid);
  kill(pid, SIGKILL);
  child.finish();
  left = seen(pid);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].liveness, wire::Liveness::kKilled);
}

TEST_F(Life, ClosedStderrWhoseNumberIsTheProgramsFileIsOnlyOursWhenNamedSo) {
  // With a log file named, nothing goes to descriptor 2, whatever it is.
  Environment environment = capped("4G");
  environment["GPUCAP_LOG_FILE"] = folder_ + "/log.%p";
  Child child(client({"linked", "until-refused", "alloc", std::to_string(512 * kMiB), "100"}), environment);
  ASSERT_TRUE(child.wait_for("READY"));
  EXPECT_EQ(child.err, "");
  EXPECT_NE(content_of(folder_ + "/log." + std::to_string(child.pid)).find("refused cuMemAlloc_v2"), std::string::npos);
}

TEST_F(Life, ChildrenByVforkSpawnAndSystemDoNotTouchTheParentsFigures) {
  Child child(program({"spawning"}), capped("4G"));
  ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
  EXPECT_EQ(value_of(child.out, "failures"), "0");
  EXPECT_EQ(seen().size(), 1u);
  ASSERT_EQ(seen(child.pid).size(), 1u);
  EXPECT_EQ(seen(child.pid)[0].liveness, wire::Liveness::kAlive);
  expect_true_figures(child.pid);
  EXPECT_EQ(child.finish(), 0);
  EXPECT_EQ(child.err, "");
}

class Python : public Life, public testing::WithParamInterface<const char*> {};

TEST_P(Python, WorkersAreCappedEachAndTheParentGoesOn) {
  Environment environment = capped("2G");
  environment["GPUCAP_LOG"] = "error";
  Child child({PYTHON, LIFE_SCRIPT, GetParam()}, environment);
  ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
  EXPECT_EQ(child.err, "");
  const auto told = nlohmann::json::parse(value_of(child.out, "report"));
  const bool after = std::string(GetParam()) == "fork-after-use";
  ASSERT_EQ(told.at("workers").size(), 6u);
  std::set<int> pids;
  for (const auto& worker : told.at("workers")) {
    pids.insert(worker.at("pid").get<int>());
    EXPECT_EQ(worker.at("init"), after ? 3 : 0) << worker;
    EXPECT_EQ(worker.at("taken"), after ? 0 : 5) << worker;  // of 256 MiB, beside a context
    EXPECT_EQ(worker.at("result"), after ? 3 : 2) << worker;
    if (!after) {
      EXPECT_LE(truth(worker.at("pid").get<int>()).peak, 2 * kGiB);
    }
  }
  EXPECT_GE(pids.size(), 2u);
  EXPECT_EQ(told.at("parent").at("taken"), 5);
  EXPECT_EQ(told.at("parent").at("result"), 2);
  int living = 0;
  for (const SeenSegment& segment : seen()) living += segment.liveness == wire::Liveness::kAlive ? 1 : 0;
  EXPECT_EQ(living, 1) << "only the parent";
  expect_true_figures(child.pid);
  EXPECT_EQ(child.finish(), 0) << child.err;
}
INSTANTIATE_TEST_SUITE_P(Multiprocessing, Python, testing::Values("fork", "fork-after-use", "spawn"),
                         [](const auto& test) {
                           std::string name = test.param;
                           name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
                           return name;
                         });

}  // namespace
}  // namespace gpucap::e2e
