#include "shim/core/limits.h"

#include <gtest/gtest.h>

#include <string>

namespace gpucap::core {
namespace {

constexpr const char* kUuid = "GPU-a1b2c3d4-0000-1111-2222-333344445555";

LimitRules rules_of(const char* text) {
  LimitRules rules;
  LimitError error;
  EXPECT_TRUE(rules.parse(text, &error)) << text << ": " << error.part << " " << (error.reason ? error.reason : "");
  return rules;
}

TEST(LimitRules, OneValueHoldsForEveryDevice) {
  const LimitRules rules = rules_of("4G");
  EXPECT_EQ(rules.for_device(0, kUuid, 80 * kGiB), 4 * kGiB);
  EXPECT_EQ(rules.for_device(7, "GPU-ffff", 80 * kGiB), 4 * kGiB);
}

TEST(LimitRules, EmptyMeansWatchOnly) {
  for (const char* text : {"", "   ", "\n"}) {
    const LimitRules rules = rules_of(text);
    EXPECT_TRUE(rules.empty());
    EXPECT_EQ(rules.for_device(0, kUuid, 80 * kGiB), kNoLimit);
  }
}

TEST(LimitRules, ZeroIsALimitAndNotTheAbsenceOfOne) { EXPECT_EQ(rules_of("0").for_device(0, kUuid, kGiB), 0u); }

TEST(LimitRules, PercentIsTakenOfEachDevice) {
  const LimitRules rules = rules_of("50%");
  EXPECT_EQ(rules.for_device(0, kUuid, 80 * kGiB), 40 * kGiB);
  EXPECT_EQ(rules.for_device(1, kUuid, 24 * kGiB), 12 * kGiB);
}

TEST(LimitRules, ListNamesDevicesAndLeavesOthersUncapped) {
  const LimitRules rules = rules_of("0=4G, 1 = 8G");
  EXPECT_EQ(rules.for_device(0, kUuid, 80 * kGiB), 4 * kGiB);
  EXPECT_EQ(rules.for_device(1, kUuid, 80 * kGiB), 8 * kGiB);
  EXPECT_EQ(rules.for_device(2, kUuid, 80 * kGiB), kNoLimit);
}

TEST(LimitRules, UuidBeatsOrdinalBeatsStarWhateverTheOrder) {
  const std::string uuid = kUuid;
  for (const std::string& text : {"*=1G,0=2G," + uuid + "=3G", uuid + "=3G,0=2G,*=1G"}) {
    const LimitRules rules = rules_of(text.c_str());
    EXPECT_EQ(rules.for_device(0, kUuid, 80 * kGiB), 3 * kGiB) << text;
    EXPECT_EQ(rules.for_device(0, "GPU-00", 80 * kGiB), 2 * kGiB) << text;
    EXPECT_EQ(rules.for_device(1, "GPU-00", 80 * kGiB), 1 * kGiB) << text;
  }
}

TEST(LimitRules, MigInstanceIsKnownByItsDigitsHoweverItsUuidIsWritten) {
  const LimitRules rules = rules_of("MIG-a1b2c3d4-0000-1111-2222-333344445555=3G");
  EXPECT_EQ(rules.for_device(0, kUuid, 80 * kGiB), 3 * kGiB) << "as CUDA writes it";
  EXPECT_EQ(rules.for_device(0, "MIG-a1b2c3d4-0000-1111-2222-333344445555", 80 * kGiB), 3 * kGiB) << "as NVML does";
  EXPECT_EQ(rules.for_device(0, "GPU-", 80 * kGiB), kNoLimit);
}

TEST(LimitRules, UuidMayBeCutShortAndInAnyCase) {
  EXPECT_EQ(rules_of("gpu-A1B2C3D4=3G").for_device(5, kUuid, 80 * kGiB), 3 * kGiB);
}

struct Bad {
  const char* text;
  const char* part;
};
class BadLimit : public testing::TestWithParam<Bad> {};
TEST_P(BadLimit, IsRefusedWholeAndNamesThePart) {
  LimitRules rules;
  LimitError error;
  EXPECT_FALSE(rules.parse(GetParam().text, &error)) << GetParam().text;
  EXPECT_STREQ(error.part, GetParam().part);
  ASSERT_NE(error.reason, nullptr);
  EXPECT_TRUE(rules.empty()) << "no half-read limit may stay in force";
}
INSTANTIATE_TEST_SUITE_P(Limits, BadLimit,
                         testing::Values(Bad{"abc", "abc"}, Bad{"-1", "-1"}, Bad{"4", "4"},
                                         Bad{"0=4G,1=oops", "1=oops"}, Bad{"0=4G,", ""}, Bad{",0=4G", ""},
                                         Bad{"0=4G,,1=4G", ""}, Bad{"4G,1=8G", "4G"}, Bad{"0=4G,0=5G", "0=5G"},
                                         Bad{"*=4G,*=5G", "*=5G"}, Bad{"x=4G", "x=4G"}, Bad{"=4G", "=4G"},
                                         Bad{"0=", "0="}, Bad{"0=4G=5G", "0=4G=5G"}, Bad{"99999=4G", "99999=4G"},
                                         Bad{"GPU-=4G", "GPU-=4G"}, Bad{"GPU-xyz!1234=4G", "GPU-xyz!1234=4G"},
                                         Bad{"4G\x1b[31m", "4G?[31m"}, Bad{"0=4G;1=5G", "0=4G;1=5G"}));

TEST(LimitRules, TooManyEntriesAreRefused) {
  std::string text;
  for (int i = 0; i < 65; ++i) text += std::to_string(i) + "=1G" + (i == 64 ? "" : ",");
  LimitRules rules;
  LimitError error;
  EXPECT_FALSE(rules.parse(text, &error));
}

}  // namespace
}  // namespace gpucap::core
