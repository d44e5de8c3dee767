// What a policy file that cannot be read does to whom, and how the problem is told.
#include <gtest/gtest.h>

#include <ctime>
#include <string>

#include "shim/core/policy.h"
#include "tests/core/policy_asked.h"

namespace gpucap::core {
namespace {

const PolicyAsker kCarol{1003, "carol"};

// Each text has one bad line, the third. alice has her own limit and group, bob a section without keys, carol none.
struct Bad {
  const char* name;
  std::string line_in_default, line_in_alice, line_in_group;  // one of them is not empty
  const char* closed;                                         // letters of whom: a b c, g for the group
  const char* shown;
};
std::string text_of(const Bad& bad) {
  return "\n\n" + bad.line_in_default + "\n[user alice]\n" + bad.line_in_alice +
         "\nlimit = 9G\ngroup = team\n[user bob]\n[group team]\n" + bad.line_in_group + "\nlimit = 20G\n";
}
class BadPolicy : public testing::TestWithParam<Bad> {};
TEST_P(BadPolicy, ClosesThoseWhomTheLineMayHaveConcerned) {
  const std::string text = text_of(GetParam());
  std::string closed;
  if (limit_for(kAlice, text) == 0) closed += "a";
  if (limit_for(kBob, text) == 0) closed += "b";
  if (limit_for(kCarol, text) == 0) closed += "c";
  if (group_limit("team", text) == 0) closed += "g";
  EXPECT_EQ(closed, GetParam().closed) << text;
  for (const PolicyAsker& asker : {kAlice, kBob, kCarol}) {
    const auto policy = policy_for(asker, text);
    ASSERT_EQ(policy->problem_count, 1) << "reported to everybody, closed or not";
    EXPECT_EQ(show(policy->problems[0]), GetParam().shown);
    if (policy->closed) {
      EXPECT_EQ(show(policy->why_closed), GetParam().shown);
    }
  }
}
constexpr const char* kKeys = "is not a key (limit, on_limit, group, group_limit)";
std::string at(const char* place, const char* reason) { return std::string(place) + " " + reason; }
const std::string kShownKey = at("3:1: 'limt'", kKeys), kShownKeyA = at("5:2: 'limt'", kKeys),
                  kShownKeyG = at("10:1: 'limt'", kKeys);
INSTANTIATE_TEST_SUITE_P(
    Policy, BadPolicy,
    testing::Values(
        Bad{"limit", "limit = 4X", "", "", "bc", "3:9: '4X' is not a size"},
        Bad{"part_of_a_list", "limit = *=4G,GPU-1234=x", "", "", "bc", "3:14: 'GPU-1234=x' is not a size"},
        Bad{"no_value", "limit =", "", "", "bc", "3:1: 'limit =' has no value"},
        Bad{"only_a_comment", "limit = # 4G", "", "", "bc", "3:1: 'limit = # 4G' has no value"},
        Bad{"comment_without_blank", "limit = 4G# x", "", "", "bc", "3:9: '4G# x' is not a size"},
        Bad{"ordinal", "limit = 0=4G", "", "", "bc",
            "3:9: '0=4G' gives a device by number, which CUDA_VISIBLE_DEVICES changes; write GPU-<uuid> or *"},
        Bad{"on_limit", "on_limit = block", "", "", "abc",
            "3:12: 'block' is not deny, wait, wait:TIME (as 30s, 500ms, 5m, 2h) or observe"},
        Bad{"group", "group = a/b", "", "", "bc",
            "3:9: 'a/b' is not a group's name (1 to 63 of A-Z a-z 0-9 . _ - and not starting with '.' or '-')"},
        Bad{"group_limit_alone", "group_limit = 4G", "", "", "abcg",
            "3:1: 'group_limit = 4G' has no readable group = NAME in its section, so it is not known whose it is"},
        Bad{"unknown_key", "limt = 4G", "", "", "abc", kShownKey.c_str()},
        Bad{"no_equals", "limit 4G", "", "", "abcg", "3:1: 'limit 4G' is neither a section nor KEY = VALUE"},
        Bad{"header_cut", "[user dave", "", "", "abcg",
            "3:1: '[user dave' is not a section ([default], [user NAME], [user UID] or [group NAME])"},
        Bad{"header_unknown", "[users dave]", "", "", "abcg",
            "3:1: '[users dave]' is not a section ([default], [user NAME], [user UID] or [group NAME])"},
        Bad{"two_users", "[user dave, eve]", "", "", "abcg",
            "3:7: 'dave, eve' is neither the name of one user nor a user id"},
        Bad{"all_users", "[user *]", "", "", "abcg", "3:7: '*' is neither the name of one user nor a user id"},
        Bad{"uid_too_large", "[user 4294967296]", "", "", "abcg",
            "3:7: '4294967296' is neither the name of one user nor a user id"},
        Bad{"group_none", "[group NONE]", "", "", "abcg",
            "3:8: 'NONE' stands for \"no group\" and cannot be the name of one"},
        Bad{"header_swallowed", "limit = 4G [user dave]", "", "", "abcg", "3:9: '4G [user dave]' is not a size"},
        Bad{"entry_swallowed", "limit = 4Ggroup = x", "", "", "abc",
            "3:9: '4Ggroup = x' names no device (an ordinal, GPU-<uuid>, MIG-<uuid> or *)"},
        Bad{"carriage_return", "# x\rlimit = 4G", "", "", "abcg", "3:4: '?' is a carriage return inside a line"},
        Bad{"escape", "limit = 4G\x1b[31m", "", "", "abcg", "3:9: '4G?[31m' is not a size"},
        Bad{"own_key", "", " limt = 4G", "", "ag", kShownKeyA.c_str()},
        Bad{"own_limit", "", "limit = 4X", "", "a", "5:9: '4X' is not a size"},
        Bad{"own_group_limit", "", "group_limit = 4X", "", "ag", "5:15: '4X' is not a size"},
        Bad{"own_second_group", "", "group = other", "", "a", "7:9: 'team' is a second group in one section"},
        Bad{"group_s_limit", "", "", "limit = 4X", "ag", "10:9: '4X' is not a size"},
        Bad{"group_s_key", "", "", "limt = 4G", "ag", kShownKeyG.c_str()},
        Bad{"group_s_other_key", "", "", "on_limit = deny", "ag",
            "10:1: 'on_limit' is not a key of a [group] section (limit)"}),
    [](const testing::TestParamInfo<Bad>& one) { return std::string(one.param.name); });

TEST(PolicyStrict, ANulByteClosesEverybody) {
  const std::string text("# \0\n[user alice]\nlimit = 4G\n", 27);
  EXPECT_EQ(limit_for(kBob, text), 0u);
  EXPECT_EQ(show(policy_for(kBob, text)->problems[0]), "1:3: '?' is a NUL byte");
}

TEST(PolicyStrict, ALongLineClosesEverybodyAndOneOfAThousandBytesDoesNot) {
  EXPECT_EQ(limit_for(kAlice, "limit = 4G\n#" + std::string(999, 'x')), 4 * kGiB);
  EXPECT_EQ(limit_for(kAlice, "limit = 4G\n[user bob]\n#" + std::string(1000, 'x')), 0u);
}

TEST(PolicyStrict, ALargeFileClosesEverybodyAndOneOfAMebibyteDoesNot) {
  std::string text = "limit = 4G\n";
  while (text.size() < kMaxPolicyBytes) text += '\n';
  EXPECT_EQ(limit_for(kAlice, text), 4 * kGiB);
  text += '\n';
  EXPECT_EQ(limit_for(kAlice, text), 0u);
  EXPECT_EQ(group_limit("any", text), 0u);
  EXPECT_EQ(show(policy_for(kAlice, text)->problems[0]), "1:1: '' the file is larger than 1 MiB");
}

TEST(PolicyStrict, AnUnknownUserIsClosedByAnyBadNamedSection) {
  EXPECT_EQ(limit_for(kNobodyKnows, "[user alice]\nlimit = 4X"), 0u);
  EXPECT_EQ(limit_for(kNobodyKnows, "[user 5]\nlimit = 4X"), kNoLimit);
}

TEST(PolicyStrict, MoreThanEightLimitsForOneCloseIt) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += "limit = " + std::to_string(i + 1) + "G\n";
  EXPECT_EQ(limit_for(kAlice, text), 1 * kGiB);
  EXPECT_EQ(limit_for(kAlice, text + "limit = 9G\n"), 0u);
  EXPECT_EQ(group_limit("a", "[group a]\n" + text), 1 * kGiB);
  EXPECT_EQ(group_limit("a", "[group a]\n" + text + "limit = 9G\n"), 0u);
}

TEST(PolicyStrict, OneUserIsNotPutIntoTwoGroups) {
  EXPECT_EQ(limit_for(kAlice, "group = a\ngroup = b\n"), 0u);
  EXPECT_EQ(limit_for(kAlice, "[user alice]\ngroup = a\n[user 1000]\ngroup = b\n"), 0u);
  EXPECT_STREQ(policy_for(kAlice, "[user alice]\ngroup = none\n[user 1000]\ngroup = b\n")->group, "b");
}

TEST(PolicyStrict, EightProblemsAreKeptAndTheRestCounted) {
  std::string text;
  for (int i = 0; i < 11; ++i) text += "[user bob]\nlimt = 4G\n";
  text += "[user alice]\nlimt = 4G\n";
  const auto policy = policy_for(kAlice, text);
  EXPECT_EQ(policy->problem_count, 8);
  EXPECT_EQ(policy->problems_left_out, 4);
  EXPECT_TRUE(policy->closed);
  EXPECT_EQ(policy->why_closed.line, 24) << "what closes is kept, however many came before";
}

TEST(PolicyStrict, ReadingTakesTimeInProportion) {
  // Many short sections and one long one: neither may make each look ahead as long as the file.
  std::string many, one = "group = a\n";
  while (many.size() < kMaxPolicyBytes - 50) many += "[user x]\ngroup = a\ngroup_limit = 4G\n";
  while (one.size() < kMaxPolicyBytes - 50) one += "group_limit = none\n";
  const std::clock_t start = std::clock();
  EXPECT_FALSE(policy_for(kAlice, many)->closed);
  EXPECT_STREQ(policy_for(kAlice, one)->group, "a");
  EXPECT_LT((std::clock() - start) / CLOCKS_PER_SEC, 10) << "of the processor; quadratic, either takes longer";
}

}  // namespace
}  // namespace gpucap::core
