// Members that fork, clone, exec and spawn: their children neither take a share with them nor give one back, and what a
// member held is free when it ends, whatever lives on.
#include "tests/e2e/group_world.h"

namespace gpucap::e2e {
namespace {

class GroupChildren : public GroupWorld {
 protected:
  void SetUp() override {
    parent_ = std::make_unique<Told>(member());
    other_ = std::make_unique<Told>(member());
    ASSERT_EQ(parent_->does("start"), 0) << parent_->err;
    ASSERT_EQ(other_->does("start"), 0) << other_->err;
    ASSERT_EQ(parent_->take("alloc", kGiB), 0);
    ASSERT_EQ(parent_->take("create", 64 * kMiB), 0);
  }
  void TearDown() override {
    parent_.reset();
    other_.reset();
    expect_nothing_left("at the end");
  }
  static pid_t child_of(const Told& parent) {
    return static_cast<pid_t>(std::atoi(value_of(parent.out, "child").c_str()));
  }
  std::unique_ptr<Told> parent_, other_;
};

TEST_F(GroupChildren, ThatEndChangeNothing) {
  for (int round = 0; round < 3; ++round) {
    const std::pair<const char*, int> ways[] = {{"fork", 7},  {"clone", 7}, {"quick-fork", 6},
                                                {"vfork", 0}, {"spawn", 0}, {"system", 0}};
    for (const auto& [way, result] : ways) {
      EXPECT_EQ(parent_->does(way), result) << way << parent_->err;
      expect_true_shares({parent_->pid, other_->pid}, way);
      expect_exactly_the_rest(*other_, way);
      expect_exactly_the_rest(*parent_, way);
    }
  }
}

TEST_F(GroupChildren, ThatLiveOnKeepNothingOfADeadMember) {
  for (const char* way : {"worker", "clone-worker"}) {
    if (parent_ == nullptr) {
      parent_ = std::make_unique<Told>(member());
      ASSERT_EQ(parent_->does("start"), 0) << parent_->err;
      ASSERT_EQ(parent_->take("alloc", kGiB), 0);
    }
    ASSERT_EQ(parent_->does(way), 0);
    const pid_t child = child_of(*parent_);
    ASSERT_GT(child, 0) << parent_->out;
    expect_true_shares({parent_->pid, other_->pid}, way);
    expect_exactly_the_rest(*other_, way);
    // Killed, but not waited for yet: a zombie holds nothing.
    kill(parent_->pid, SIGKILL);
    siginfo_t info{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(parent_->pid), &info, WEXITED | WNOWAIT), 0);
    expect_exactly_the_rest(*other_, std::string(way) + " outlives its parent");
    expect_true_shares({other_->pid}, way);
    EXPECT_EQ(kill(child, 0), 0) << "the child was to live on";
    kill(child, SIGKILL);
    parent_->finish();
    parent_.reset();
    expect_true_shares({other_->pid}, std::string(way) + ", when the child is gone too");
  }
}

TEST_F(GroupChildren, AMemberThatBecomesAnotherProgramLetsGo) {
  for (const char* how : {"exec", "exec bare"}) {
    if (parent_ == nullptr) {
      parent_ = std::make_unique<Told>(member());
      ASSERT_EQ(parent_->does("start"), 0) << parent_->err;
      ASSERT_EQ(parent_->take("alloc", kGiB), 0);
    }
    ASSERT_EQ(parent_->does(how), 0) << parent_->err;
    expect_exactly_the_rest(*other_, how);
    expect_true_shares({other_->pid}, how);
    EXPECT_EQ(parent_->finish(), 256) << how;  // read found the end
    parent_.reset();
  }
}

TEST_F(GroupChildren, WorkersThatAreKilledTakeNothingWithThem) {
  std::vector<pid_t> workers;
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(parent_->does(i % 2 == 0 ? "worker" : "clone-worker"), 0);
    workers.push_back(child_of(*parent_));
  }
  for (const pid_t worker : workers) {
    kill(worker, SIGKILL);
    expect_true_shares({parent_->pid, other_->pid}, "a worker killed");
  }
  expect_exactly_the_rest(*other_, "all workers killed");
  EXPECT_EQ(parent_->does("give-all"), 0);
  expect_true_shares({parent_->pid, other_->pid}, "all given back");
}

}  // namespace
}  // namespace gpucap::e2e
