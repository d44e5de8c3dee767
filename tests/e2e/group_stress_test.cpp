// Sixteen members of four threads each at the group's limit, one of them killed every 20 ms and replaced, while an
// outsider adds up what the machine says. GPUCAP_STRESS_SECONDS makes it longer than ten seconds, GPUCAP_STRESS_SEED
// repeats the choices of a run.
#include <sys/prctl.h>
#include <sys/wait.h>

#include <chrono>
#include <random>
#include <thread>

#include "tests/e2e/group_program.h"
#include "tests/e2e/group_stress_stats.h"
#include "tests/e2e/group_world.h"

namespace gpucap::e2e {
namespace {

constexpr size_t kMembers = 16;
constexpr size_t kSurvivors = 2;  // of them are never killed
constexpr uint64_t kStressLimit = 10 * kGiB;

// Adds up from outside, without stopping anybody. Figures read one after the other can show a sum that never was, so
// only two equal readings in a row count, and of those who have died since then (they may have been dead already) none.
class Observer {
 public:
  explicit Observer(fake::Truth& truth) : truth_(truth) {}

  void look() {
    read(&first_);
    for (int tries = 0; tries < 20; ++tries) {
      read(&second_);
      if (first_ == second_) return judge();
      first_.swap(second_);
    }
    ++unsteady;
  }

  uint64_t steady = 0, unsteady = 0, highest = 0, above = 0;

 private:
  struct Figure {
    int slot;
    uint64_t owner, bytes;
    bool operator==(const Figure& other) const = default;
  };

  void read(std::vector<Figure>* out) {
    out->clear();
    const fake::TruthSlot* slots = truth_.slots();
    for (int i = 0; i < fake::Truth::kSlots && slots[i].owner.load() != 0; ++i)
      if (slots[i].dead.load() == 0) out->push_back({i, slots[i].owner.load(), slots[i].devices[0].bytes.load()});
  }
  static uint64_t sum(const std::vector<Figure>& figures) {
    uint64_t bytes = 0;
    for (const Figure& one : figures) bytes += one.bytes;
    return bytes;
  }

  void judge() {
    ++steady;
    if (sum(second_) > kStressLimit) {
      truth_.used(0);  // notes who is dead by now
      const fake::TruthSlot* slots = truth_.slots();
      std::erase_if(second_, [&](const Figure& one) {
        return slots[one.slot].dead.load() != 0 || slots[one.slot].owner.load() != one.owner;
      });
      if (sum(second_) > kStressLimit) ++above;
    }
    highest = std::max(highest, sum(second_));
  }

  fake::Truth& truth_;
  std::vector<Figure> first_, second_;
};

class GroupStress : public GroupWorld {
 protected:
  GroupStress() {
    stats_ = StressStats::open_at((folder_ + "/stats").c_str());
    environment_ = member();
    environment_["GPUCAP_GROUP_LIMIT"] = std::to_string(kStressLimit);
    environment_["GPUCAP_LOG"] = "error";
    environment_["FAKE_CUDA_MEMORY"] = std::to_string(64 * kGiB);
    environment_["STRESS_STATS"] = folder_ + "/stats";
  }
  ~GroupStress() override {
    for (const pid_t pid : pids_) kill_and_reap(pid);
    munmap(stats_, sizeof(StressStats));
  }

  pid_t start_member() {
    const std::string number = std::to_string(started_++);
    const pid_t pid = fork();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const auto& [name, value] : environment_) setenv(name.c_str(), value.c_str(), 1);
    // Every other one naps between the steps of its bookkeeping now and then.
    if (started_ % 2 == 0) {
      setenv("LD_PRELOAD", TESTING_LIBRARY, 1);
      setenv("GPUCAP_TEST_JITTER", "200", 1);
    }
    execl(CLIENT_PROGRAM, CLIENT_PROGRAM, "stress", number.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  // How long it took to die.
  static uint64_t kill_and_reap(pid_t pid) {
    const uint64_t began_ns = now_ns();
    kill(pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    return now_ns() - began_ns;
  }
  template <class Predicate>
  bool all_members(Predicate predicate, std::chrono::seconds at_most) {
    const auto until = std::chrono::steady_clock::now() + at_most;
    while (std::chrono::steady_clock::now() < until) {
      bool all = true;
      for (const int number : numbers_) all = all && predicate(stats_->members[number]);
      if (all) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
  }

  StressStats* stats_ = nullptr;
  Environment environment_;
  std::vector<pid_t> pids_;
  std::vector<int> numbers_;  // of the living in the statistics
  int started_ = 0;
};

TEST_F(GroupStress, NeverAboveTheLimitAndNobodyWaitsForTheDead) {
  const char* asked_seconds = std::getenv("GPUCAP_STRESS_SECONDS");
  const char* asked_seed = std::getenv("GPUCAP_STRESS_SEED");
  const int seconds = asked_seconds == nullptr ? 10 : std::atoi(asked_seconds);
  const unsigned seed = asked_seed == nullptr ? std::random_device()() : static_cast<unsigned>(std::atoi(asked_seed));
  SCOPED_TRACE("GPUCAP_STRESS_SEED=" + std::to_string(seed));
  for (size_t i = 0; i < kMembers; ++i) {
    numbers_.push_back(started_);
    pids_.push_back(start_member());
  }
  std::atomic<bool> over{false};
  Observer observer(truth_);
  std::thread watching([&] {
    while (!over) {
      observer.look();
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  });

  std::mt19937 random(seed);
  const auto began = std::chrono::steady_clock::now();
  auto next = began;
  uint64_t longest_death_ns = 0;
  int kills = 0;
  while (std::chrono::steady_clock::now() < began + std::chrono::seconds(seconds) && started_ < StressStats::kMembers) {
    next += std::chrono::milliseconds(20);
    std::this_thread::sleep_until(next);
    const size_t victim = kSurvivors + random() % (kMembers - kSurvivors);
    longest_death_ns = std::max(longest_death_ns, kill_and_reap(pids_[victim]));
    ++kills;
    numbers_[victim] = started_;
    pids_[victim] = start_member();
  }
  stats_->phase = 1;
  EXPECT_TRUE(all_members([](const StressRecord& one) { return one.gave_all.load() != 0; }, std::chrono::seconds(30)))
      << "somebody did not come to an end";
  over = true;
  watching.join();

  EXPECT_EQ(truth_.used(0), 0u);
  const wire::GroupSnapshot seen = group();
  ASSERT_EQ(seen.devices.size(), 1u);
  EXPECT_EQ(seen.devices[0].used_bytes, 0);
  for (const wire::GroupMember& one : seen.members) EXPECT_EQ(one.shares[0].held_bytes, 0) << "process " << one.pid;
  EXPECT_EQ(seen.members.size(), kMembers);
  stats_->phase = 2;
  for (const pid_t pid : pids_) {
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  }
  pids_.clear();
  expect_nothing_left("at the end");

  uint64_t calls = 0, granted = 0, refused = 0, odd = 0, joined = 0, wall_ns = 0, stall_ns = 0, delay_ns = 0;
  for (int i = 0; i < started_; ++i) {
    const StressRecord& one = stats_->members[i];
    calls += one.calls;
    granted += one.granted;
    refused += one.refused;
    odd += one.odd;
    joined += one.joined;
    wall_ns = std::max(wall_ns, one.longest_wall_ns.load());
    stall_ns = std::max(stall_ns, one.longest_stall_ns.load());
    delay_ns = std::max(delay_ns, one.longest_delay_ns.load());
  }
  const auto ms = [](uint64_t ns) { return static_cast<double>(ns) / 1e6; };
  std::printf(
      "%d kills, %d members of which %llu had a context; %llu calls, %llu granted, %llu refused; sum at most %.3f of "
      "%.0f GiB in %llu steady looks (%llu unsteady); longest call %.1f ms, of that no processor %.1f ms, else %.1f "
      "ms; "
      "longest death %.1f ms\n",
      kills, started_, static_cast<unsigned long long>(joined), static_cast<unsigned long long>(calls),
      static_cast<unsigned long long>(granted), static_cast<unsigned long long>(refused),
      static_cast<double>(observer.highest) / static_cast<double>(kGiB),
      static_cast<double>(kStressLimit) / static_cast<double>(kGiB), static_cast<unsigned long long>(observer.steady),
      static_cast<unsigned long long>(observer.unsteady), ms(wall_ns), ms(delay_ns), ms(stall_ns),
      ms(longest_death_ns));
  EXPECT_EQ(observer.above, 0u) << "the members together held more than the limit";
  EXPECT_EQ(odd, 0u);
  // A call may have to wait until a dying process has let go of the card, and for another member that has no processor:
  // both took this long for reasons that are not ours. What is beyond is a stall.
  EXPECT_LT(ms(stall_ns), 100 + ms(longest_death_ns) + ms(delay_ns));
  // And it was a stress: the limit was reached, and most of those killed had been at it.
  EXPECT_GT(observer.highest, kStressLimit - 256 * kMiB);
  EXPECT_GT(observer.steady, static_cast<uint64_t>(seconds) * 100);
  EXPECT_GT(refused, static_cast<uint64_t>(seconds) * 10);
  EXPECT_GT(granted, static_cast<uint64_t>(seconds) * 100);
  EXPECT_GT(joined, static_cast<uint64_t>(started_) / 4);
}

}  // namespace
}  // namespace gpucap::e2e
