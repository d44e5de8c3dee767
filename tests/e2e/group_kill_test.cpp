// A member dies at each named step of the bookkeeping that members share. The names are taken from the sources, so that
// a new step is killed at too, or fails the test until some scenario below goes through it.
#include <fstream>
#include <regex>
#include <set>

#include "tests/e2e/group_world.h"

namespace gpucap::e2e {
namespace {

struct Scenario {
  const char* name;
  bool alone;      // the others join after its death
  bool contended;  // another one is stopped while it asks
  const char* on_limit;
  std::vector<std::string> commands;
};

const std::vector<Scenario> kScenarios = {
    {"first",
     true,
     false,
     "",
     {"start", "take alloc 536870912", "take async 67108864", "take create 67108864", "give", "give",
      "take alloc 4294967296", "take alloc 4000000000", "give-all", "stop", "quit"}},
    {"beside others", false, false, "", {"start", "take alloc 268435456", "take alloc 4000000000", "quit"}},
    {"in line", false, false, "wait:1", {"start", "take alloc 2147483648", "quit"}},
    {"at once with another", false, true, "", {"start", "arm", "take alloc 1073741824", "quit"}},
};

std::set<std::string> names_in_the_sources() {
  std::set<std::string> names;
  for (const char* folder : {"/wire", "/shim/process"}) {
    for (const auto& entry : std::filesystem::directory_iterator(std::string(SOURCE_FOLDER) + folder)) {
      if (entry.path().extension() != ".cpp") continue;
      std::ifstream file(entry.path());
      const std::string text((std::istreambuf_iterator<char>(file)), {});
      const std::regex step("GPUCAP_STEP\\(\"([^\"]+)\"\\)");
      for (auto at = std::sregex_iterator(text.begin(), text.end(), step); at != std::sregex_iterator(); ++at)
        names.insert((*at)[1]);
    }
  }
  return names;
}

class GroupKill : public GroupWorld {
 protected:
  void start_survivors() {
    Environment first = member(TESTING_LIBRARY);
    first["GPUCAP_TEST_STOP_AT"] = "careful:asked";
    first["GPUCAP_TEST_STOP_FILE"] = folder_ + "/stop";
    a_ = std::make_unique<Told>(first);
    ASSERT_EQ(a_->does("start"), 0) << a_->err;
    b_ = std::make_unique<Told>(member());
    ASSERT_EQ(b_->does("start"), 0) << b_->err;
    ASSERT_EQ(b_->take("alloc", 512 * kMiB), 0);
  }

  static void wait_until_stopped(pid_t pid) {
    for (int i = 0; i < 5000; ++i) {
      std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
      const std::string text((std::istreambuf_iterator<char>(file)), {});
      if (text.find(") T ") != std::string::npos) return;
      usleep(1000);
    }
    FAIL() << "the other member never came to the step where it is to stop";
  }

  // Runs the victim to its end; the wait status.
  int run(const Scenario& scenario, const std::string& variable, const std::string& value) {
    Environment environment = member(TESTING_LIBRARY);
    environment[variable] = value;
    if (scenario.on_limit[0] != '\0') environment["GPUCAP_ON_LIMIT"] = scenario.on_limit;
    Told victim(environment);
    bool armed = false;
    for (const std::string& command : scenario.commands) {
      if (command == "arm") {
        // The first member asks for all that is left, and stops before its answer.
        const uint64_t rest = kLimit - truth_.used(0);
        EXPECT_EQ(a_->does("unsettle"), 0);  // so that it looks and asks carefully
        std::ofstream(folder_ + "/stop").put('x');
        a_->say("take alloc " + std::to_string(rest));
        wait_until_stopped(a_->pid);
        armed = true;
      } else if (command == "quit") {
        victim.tell("quit\n");
      } else if (victim.does(command) == -99) {
        break;
      }
    }
    const int status = victim.finish();
    if (armed) {
      std::filesystem::remove(folder_ + "/stop");
      kill(a_->pid, SIGCONT);
      EXPECT_EQ(a_->answer(), 0) << "the one that was stopped does not get what is free now";
      EXPECT_EQ(a_->does("give"), 0);
    }
    return status;
  }

  // How often each step was passed in a run to the end.
  std::map<std::string, int> record(const Scenario& scenario) {
    const std::string path = folder_ + "/record";
    std::filesystem::remove(path);
    const int status = run(scenario, "GPUCAP_TEST_RECORD", path);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << scenario.name << ": status " << status;
    std::map<std::string, int> counts;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) ++counts[line];
    return counts;
  }

  void expect_undisturbed(const std::string& when) {
    expect_exactly_the_rest(*a_, when);
    expect_exactly_the_rest(*b_, when);
    expect_true_shares({a_->pid, b_->pid}, when);
  }
  void end_survivors(const std::string& when) {
    EXPECT_EQ(a_->finish(), 0);
    EXPECT_EQ(b_->finish(), 0);
    a_.reset();
    b_.reset();
    expect_nothing_left(when);
  }

  std::unique_ptr<Told> a_, b_;
};

TEST_F(GroupKill, AtEveryStepLeavesTheOthersUndisturbed) {
  std::set<std::string> missing = names_in_the_sources();
  ASSERT_GT(missing.size(), 15u) << "no steps found below " << SOURCE_FOLDER;
  int kills = 0;
  for (const Scenario& scenario : kScenarios) {
    if (!scenario.alone) start_survivors();
    const std::map<std::string, int> passed = record(scenario);
    for (const auto& [name, count] : passed) {
      if (missing.erase(name) == 0 && !scenario.contended) continue;  // an earlier scenario had it
      // The first time; and in the midst, where the same step comes again under other conditions.
      for (const int nth : std::set<int>{1, (count + 1) / 2}) {
        const std::string when = std::string(scenario.name) + ", killed at " + name + ":" + std::to_string(nth);
        // Which way a request takes depends on how old its figures are, so on a busy machine the run may not come by
        // the step as often as the recorded one did: then it ended well, and another is made.
        int status = 0;
        for (int tries = 0; tries < 20 && WIFEXITED(status) && WEXITSTATUS(status) == 0; ++tries)
          status = run(scenario, "GPUCAP_TEST_KILL_AT", name + ":" + std::to_string(nth));
        ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << when << ": status " << status;
        ++kills;
        if (scenario.alone) start_survivors();
        expect_undisturbed(when);
        if (scenario.alone) end_survivors(when);
        if (HasFailure()) return;
      }
    }
    if (!scenario.alone) end_survivors(scenario.name);
  }
  for (const std::string& name : missing) ADD_FAILURE() << "no scenario goes through the step " << name;
  std::printf("%d deaths at %zu steps\n", kills, names_in_the_sources().size());
}

}  // namespace
}  // namespace gpucap::e2e
