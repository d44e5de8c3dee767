// Every order in which the members of a group can come to the words that they share, tried with the real code: the sum
// never passes the limit, "no room" is true, no byte is lost, whoever is killed wherever. Bounds: the scenarios below,
// one death each, and a call that goes round more than `most_rounds` times ends that order; within them the search is
// exhaustive, but two moments that have the same future are gone on from once only.
#include <gtest/gtest.h>

#include <random>
#include <unordered_set>

#include "tests/wire/group_scheduler.h"

namespace gpucap::wire {
// Found by GoogleTest where the parameter's type lives.
static void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

namespace {

using Kind = Operation::Kind;
constexpr Operation kTry6{Kind::kTry, 6}, kTry4{Kind::kTry, 4}, kCareful6{Kind::kCareful, 6},
    kCareful4{Kind::kCareful, 4}, kGiveAll{Kind::kGive}, kGive5{Kind::kGive, 5}, kJoin{Kind::kJoin},
    kWait6{Kind::kWait, 6}, kEndWait{Kind::kEndWait};

struct Count {
  uint64_t moments = 0;  // different ones
  uint64_t orders = 0;   // schedules run, each from the start
  uint64_t steps = 0;
  uint64_t given_up = 0;  // orders ended by most_rounds
  int most_granted = 0, fewest_granted = 1000;
};

struct Branch {
  std::vector<Choice> options;
  size_t chosen = 0;
};

std::string text_of(const std::vector<Branch>& path) {
  std::string text;
  for (const Branch& branch : path) text += std::to_string(branch.options[branch.chosen]) + " ";
  return text;
}

Count explore(const Scenario& scenario) {
  Count count;
  World world(scenario);
  std::unordered_set<uint64_t> seen;
  std::vector<Branch> path;
  std::vector<Choice> options;
  for (;;) {
    world.restart();
    ++count.orders;
    for (size_t depth = 0;; ++depth) {
      if (depth == path.size()) {
        const std::string breach = world.breach();
        if (!breach.empty()) {
          ADD_FAILURE() << scenario.name << ": " << breach << ", after the choices " << text_of(path);
          return count;
        }
        count.given_up += world.given_up() ? 1 : 0;
        if (world.given_up() || !seen.insert(world.hash()).second) break;
        ++count.moments;
        world.options(&options);
        if (options.empty()) {
          const std::string end = world.breach_at_the_end();
          if (!end.empty()) {
            ADD_FAILURE() << scenario.name << ": at the end " << end << ", after the choices " << text_of(path);
            return count;
          }
          count.most_granted = std::max(count.most_granted, world.granted_count());
          count.fewest_granted = std::min(count.fewest_granted, world.granted_count());
          break;
        }
        path.push_back({options, 0});
      }
      world.take(path[depth].options[path[depth].chosen]);
      ++count.steps;
    }
    while (!path.empty() && ++path.back().chosen == path.back().options.size()) path.pop_back();
    if (path.empty()) return count;
  }
}

const Scenario kScenarios[] = {
    {"TwoTry", 10, {0, 0}, {{0, {kTry6, kGiveAll, kTry6}}, {1, {kTry6, kGiveAll, kTry6}}}, {0}},
    {"TwoTryCarefully", 10, {0, 0}, {{0, {kCareful6, kGiveAll}}, {1, {kCareful6, kGiveAll}}}, {0}},
    {"TwoThatBothFit", 10, {0, 0}, {{0, {kCareful4}}, {1, {kTry4, kCareful6}}}, {1}},
    {"ThreeTry", 10, {0, 0, 0}, {{0, {kTry4, kGiveAll}}, {1, {kTry4, kGiveAll}}, {2, {kTry4}}}, {1}},
    {"AHolderGivesBack", 10, {0, 0, 9}, {{0, {kCareful6}}, {1, {kTry4}}, {2, {kGive5, kGive5}}}, {}},
    {"AHolderDies", 10, {0, 0, 8}, {{0, {kCareful6}}, {1, {kTry4, kGiveAll}}}, {2}},
    {"AHolderDiesSlowly", 10, {0, 0, 8}, {{0, {kCareful6}}, {1, {kTry4}}}, {2}, true},
    {"TwoThreadsOfOne", 10, {0, 0}, {{0, {kCareful6, kGiveAll}}, {0, {kTry4}}, {1, {kTry6}}}, {1}, false, 1},
    {"OneInLine", 10, {0, 6}, {{0, {kWait6, kCareful6, kEndWait, kTry4}}, {1, {kGive5, kTry4}}}, {0}},
    {"ANewOneInTheSlotOfTheDead", 10, {6, 0}, {{0, {kTry4}}, {0, {kJoin, kTry6}}, {1, {kCareful6}}}, {0}, false, 1},
};

class EveryOrder : public testing::TestWithParam<Scenario> {};

TEST_P(EveryOrder, KeepsTheBudget) {
  const Count count = explore(GetParam());
  std::printf("%s: %llu moments, %llu orders of %llu steps in all, %llu given up; %d to %d granted\n", GetParam().name,
              static_cast<unsigned long long>(count.moments), static_cast<unsigned long long>(count.orders),
              static_cast<unsigned long long>(count.steps), static_cast<unsigned long long>(count.given_up),
              count.fewest_granted, count.most_granted);
}
INSTANTIATE_TEST_SUITE_P(Group, EveryOrder, testing::ValuesIn(kScenarios),
                         [](const auto& test) { return std::string(test.param.name); });

// Longer programs than can be tried in every order, in many orders by chance: each ends, and with the right answers.
TEST(GroupByChance, CallsEndAndWhatFitsIsGranted) {
  const Scenario scenario{
      "three of which two fit", 10, {0, 0, 0}, {{0, {kCareful4}}, {1, {kCareful4}}, {2, {kCareful4}}}, {}, false, 1000};
  const Scenario deaths{"deaths and returns",
                        10,
                        {0, 0, 0},
                        {{0, {kTry6, kGiveAll, kCareful4, kGiveAll, kCareful6, kGiveAll}},
                         {1, {kCareful6, kGiveAll, kTry4, kGiveAll, kCareful4, kGiveAll}},
                         {2, {kCareful4, kGiveAll, kCareful6, kGiveAll}},
                         {1, {kJoin, kCareful6, kGiveAll, kTry4}}},
                        {0, 1, 2},
                        true,
                        1000};
  for (const Scenario* one : {&scenario, &deaths}) {
    World world(*one);
    std::vector<Choice> options;
    for (unsigned seed = 0; seed < 4000; ++seed) {
      std::mt19937 random(seed);
      world.restart();
      int steps = 0;
      for (world.options(&options); !options.empty(); world.options(&options)) {
        Choice choice = options[random() % options.size()];
        if (choice <= kKill && choice > kBury && random() % 50 != 0) choice = options[0];  // late as well as early
        world.take(choice);
        ASSERT_EQ(world.breach(), "") << one->name << ", seed " << seed;
        ASSERT_LT(++steps, 20000) << one->name << ", seed " << seed << ": somebody goes round for ever";
      }
      ASSERT_EQ(world.breach_at_the_end(), "") << one->name << ", seed " << seed;
      if (one == &scenario) {
        ASSERT_EQ(world.granted_count(), 2) << "seed " << seed;
      }
    }
  }
}

// One that is stopped between asking and its answer is waited for, not for long, and harms nobody.
TEST(GroupByChance, AStoppedOneIsWaitedForALittle) {
  const Scenario scenario{"stopped", 10, {0, 0}, {{0, {kCareful6}}, {1, {kTry6}}}, {}, false, 1000};
  for (const bool goes_on : {true, false}) {
    World world(scenario);
    for (int i = 0; i < 2; ++i) world.take(1);  // has asked
    while (!world.has_ended(0) && (!goes_on || world.slept_ns(0) < 30'000'000)) world.take(0);
    EXPECT_EQ(world.has_ended(0), !goes_on);
    EXPECT_LT(world.slept_ns(0), 60'000'000u);
    EXPECT_EQ(world.granted_count(), 0);
    while (!world.has_ended(1)) world.take(1);
    while (!world.has_ended(0)) world.take(0);
    EXPECT_EQ(world.granted_count(), 1);
    EXPECT_EQ(world.breach_at_the_end(), "");
  }
}

}  // namespace
}  // namespace gpucap::wire
