// What a policy file that can be read asks of whom.
#include "shim/core/policy.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/core/policy_asked.h"

namespace gpucap::core {
namespace {

using Mode = OnLimitValue::Mode;
constexpr uint64_t kSecond = 1000000000;

TEST(Policy, EmptyAsksNothingOfAnybody) {
  for (const char* text : {"", "\n\n", "# limit = 4G\n", "; limit = 4G", "[default]\n", "\xef\xbb\xbf", "  \t\r\n"}) {
    const auto policy = policy_for(kAlice, text);
    EXPECT_FALSE(policy->binds()) << text;
    EXPECT_EQ(policy->problem_count, 0) << text;
    EXPECT_EQ(policy->for_device(0, kCardA, kCardBytes), kNoLimit) << text;
  }
}

TEST(Policy, WhatStandsBeforeAnySectionIsTheDefault) {
  EXPECT_EQ(limit_for(kAlice, "limit = 4G"), 4 * kGiB);
  EXPECT_EQ(limit_for(kAlice, "[default]\nlimit=4G\n"), 4 * kGiB);
  EXPECT_EQ(limit_for(kAlice, "limit = 50%\n"), 40 * kGiB);
  EXPECT_EQ(limit_for(kAlice, "limit = GPU-b1b2=4G,*=6G\n"), 6 * kGiB);
  EXPECT_EQ(limit_for(kAlice, "limit = GPU-b1b2=4G,*=6G\n", kCardB), 4 * kGiB);
}

TEST(Policy, UsersOwnSectionReplacesTheDefaultKeyByKey) {
  const char* text =
      "limit = 4G\non_limit = wait:30s\n"
      "[user alice]\nlimit = 8G\n"
      "[user 1001]\non_limit = deny\n";
  EXPECT_EQ(limit_for(kAlice, text), 8 * kGiB);
  EXPECT_EQ(limit_for(kBob, text), 4 * kGiB);
  EXPECT_EQ(policy_for(kAlice, text)->on_limit.mode, Mode::kWait);
  EXPECT_EQ(policy_for(kAlice, text)->on_limit.wait_ns, 30 * kSecond);
  EXPECT_EQ(policy_for(kBob, text)->on_limit.mode, Mode::kDeny);
  EXPECT_EQ(limit_for({5, "carol"}, text), 4 * kGiB);
}

TEST(Policy, NoneFreesAUserFromTheDefault) {
  const char* text = "limit = 4G\ngroup = all\ngroup_limit = 20G\n[user alice]\nlimit = None\ngroup = none\n";
  EXPECT_FALSE(policy_for(kAlice, text)->binds());
  EXPECT_TRUE(policy_for(kBob, text)->binds());
  EXPECT_STREQ(policy_for(kBob, text)->group, "all");
}

TEST(Policy, LowestOfDuplicatesHolds) {
  EXPECT_EQ(limit_for(kAlice, "limit = 8G\nlimit = 4G\nlimit = none\nlimit = 6G\n"), 4 * kGiB);
  EXPECT_EQ(limit_for(kAlice, "[user alice]\nlimit = 8G\n[user bob]\nlimit = 1G\n[user alice]\nlimit = 6G\n"),
            6 * kGiB);
  EXPECT_EQ(limit_for(kAlice, "[user alice]\nlimit = 8G\n[user 1000]\nlimit = 7G\n"), 7 * kGiB) << "name and uid";
  const char* cards = "limit = GPU-a1b2=2G,*=9G\nlimit = GPU-b1b2=3G,*=8G\n";
  EXPECT_EQ(limit_for(kAlice, cards, kCardA), 2 * kGiB) << "lowest on each card by itself";
  EXPECT_EQ(limit_for(kAlice, cards, kCardB), 3 * kGiB);
  EXPECT_EQ(limit_for(kAlice, cards, "GPU-c"), 8 * kGiB);
}

TEST(Policy, StrictestOfDuplicateModesHolds) {
  const auto mode = [](const std::string& text) { return policy_for(kAlice, text)->on_limit; };
  EXPECT_EQ(mode("on_limit = observe\non_limit = wait\n").mode, Mode::kWait);
  EXPECT_EQ(mode("on_limit = deny\non_limit = wait:1s\n").mode, Mode::kDeny);
  EXPECT_EQ(mode("on_limit = wait\non_limit = wait:9s\non_limit = wait:1m").wait_ns, 9 * kSecond);
}

TEST(Policy, GroupsBudgetIsTheSameForEveryMemberAndTheLowestThatIsWritten) {
  const char* text =
      "[user alice]\ngroup_limit = 9G\ngroup = team\n"
      "[user bob]\ngroup = team\n"
      "[user carol]\ngroup = team\ngroup_limit = none\n"
      "[group team]\nlimit = 12G\n"
      "[group other]\nlimit = 1G\n";
  for (const PolicyAsker& asker : {kAlice, kBob, PolicyAsker{5, "carol"}}) {
    const auto policy = policy_for(asker, text);
    EXPECT_STREQ(policy->group, "team");
    EXPECT_EQ(policy->group_policy.for_device(0, kCardA, kCardBytes), 9 * kGiB);
    EXPECT_TRUE(policy->limits.empty());
    EXPECT_FALSE(policy->closed);
  }
  EXPECT_STREQ(policy_for({5, "dave"}, text)->group, "");
  EXPECT_EQ(group_limit("team", text), 9 * kGiB) << "for one that joins by itself";
  EXPECT_EQ(group_limit("other", text), 1 * kGiB);
  EXPECT_EQ(group_limit("Team", text), kNoLimit);
}

TEST(Policy, GroupLimitOfTheDefaultStaysWithTheDefaultsGroup) {
  const char* text = "group = all\ngroup_limit = 20G\n[user bob]\ngroup = small\n[group small]\nlimit = 2G\n";
  EXPECT_EQ(policy_for(kAlice, text)->group_policy.for_device(0, kCardA, kCardBytes), 20 * kGiB);
  EXPECT_EQ(policy_for(kBob, text)->group_policy.for_device(0, kCardA, kCardBytes), 2 * kGiB);
}

TEST(Policy, TakesWhatEditorsOfOtherSystemsWrite) {
  EXPECT_EQ(limit_for(kAlice, "\xef\xbb\xbf[default]\r\nlimit = 4G\r\n[user alice]\r\nlimit = 3G"), 3 * kGiB);
  EXPECT_EQ(limit_for(kAlice, "\xef\xbb\xbflimit = 4G"), 4 * kGiB);
  EXPECT_EQ(limit_for(kAlice, "\t [ USER   alice ]  # a trainee\n\t LIMIT\t=4G # for now\n"), 4 * kGiB);
}

TEST(Policy, NamesOfDirectoryServicesAreNames) {
  EXPECT_EQ(limit_for({7, "DOM\\jane.doe"}, "[user DOM\\jane.doe]\nlimit=3G"), 3 * kGiB);
  EXPECT_EQ(limit_for({7, "j\xc3\xb6rg@example.org"}, "[user j\xc3\xb6rg@example.org]\nlimit=3G"), 3 * kGiB);
  EXPECT_EQ(limit_for({7, "host$"}, "[user host$]\nlimit=3G"), 3 * kGiB);
  EXPECT_EQ(limit_for({7, "Alice"}, "[user alice]\nlimit=3G"), kNoLimit) << "letter case counts";
  EXPECT_EQ(limit_for({0, "root"}, "[user 0]\nlimit=3G"), 3 * kGiB) << "root is a user like any other";
}

TEST(Policy, UserWithoutAKnownNameIsUnderEveryNamedLimit) {
  const char* text =
      "limit = 8G\n[user alice]\nlimit = 4G\n[user bob]\nlimit = none\non_limit = deny\n[user 5]\nlimit=1G\n";
  EXPECT_EQ(limit_for(kNobodyKnows, text), 4 * kGiB);
  EXPECT_EQ(policy_for(kNobodyKnows, text)->on_limit.mode, Mode::kDeny);
  EXPECT_EQ(limit_for(kNobodyKnows, "limit=8G\n[user 1002]\nlimit=9G\n"), 9 * kGiB) << "the uid is known";
  const auto policy = policy_for(kNobodyKnows, "[user alice]\ngroup = a\n");
  EXPECT_TRUE(policy->closed) << "nobody can be in every group";
  EXPECT_EQ(policy->why_closed.line, 2);
  EXPECT_EQ(policy->problem_count, 0) << "the file is fine";
  EXPECT_FALSE(policy_for(kNobodyKnows, "group = a\n[user alice]\ngroup = a\n")->closed);
}

TEST(Policy, AProcessMakesTheFilesWordStricterAndNeverLaxer) {
  const OnLimitValue deny{Mode::kDeny, 0}, wait{Mode::kWait, 0}, wait_9s{Mode::kWait, 9 * kSecond},
      observe{Mode::kObserve, 0};
  const auto with = [](const char* text, const OnLimitValue* asked) {
    const OnLimitValue value = policy_for(kAlice, text)->on_limit_with(asked);
    return std::make_pair(value.mode, value.wait_ns);
  };
  const auto is = [](Mode mode, uint64_t ns = 0) { return std::make_pair(mode, ns); };
  EXPECT_EQ(with("limit = 4G", nullptr), is(Mode::kDeny));
  EXPECT_EQ(with("limit = 4G", &wait_9s), is(Mode::kWait, 9 * kSecond)) << "waiting stays under the limit";
  EXPECT_EQ(with("limit = 4G", &observe), is(Mode::kDeny)) << "observing does not";
  EXPECT_EQ(with("group = a\n[group a]\nlimit = 4G", &observe), is(Mode::kDeny));
  EXPECT_EQ(with("limt = 4G", &observe), is(Mode::kDeny)) << "closed";
  EXPECT_EQ(with("", &observe), is(Mode::kObserve)) << "no limit of the file's";
  EXPECT_EQ(with("", nullptr), is(Mode::kDeny));
  EXPECT_EQ(with("limit = 4G\non_limit = observe", nullptr), is(Mode::kObserve));
  EXPECT_EQ(with("limit = 4G\non_limit = observe", &wait), is(Mode::kWait));
  EXPECT_EQ(with("limit = 4G\non_limit = wait", &wait_9s), is(Mode::kWait, 9 * kSecond));
  EXPECT_EQ(with("limit = 4G\non_limit = wait:9s", &wait), is(Mode::kWait, 9 * kSecond));
  EXPECT_EQ(with("limit = 4G\non_limit = wait", &observe), is(Mode::kWait));
  EXPECT_EQ(with("limit = 4G\non_limit = wait", &deny), is(Mode::kDeny));
  EXPECT_EQ(with("limit = 4G\non_limit = deny", &wait), is(Mode::kDeny));
}

TEST(Policy, ASecondReadingForgetsTheFirst) {
  auto policy = policy_for(kAlice, "limit = 1G\ngroup = a\non_limit = wait\n[group a]\nlimit = 1G\nlimit = x\n");
  EXPECT_TRUE(policy->closed);
  read_policy("limit = 4G", kAlice, policy.get());
  EXPECT_FALSE(policy->closed);
  EXPECT_EQ(policy->problem_count, 0);
  EXPECT_STREQ(policy->group, "");
  EXPECT_FALSE(policy->has_on_limit);
  EXPECT_EQ(policy->for_device(0, kCardA, kCardBytes), 4 * kGiB);
  EXPECT_EQ(policy->group_policy.for_device(0, kCardA, kCardBytes), kNoLimit);
}

}  // namespace
}  // namespace gpucap::core
