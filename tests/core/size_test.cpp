#include "shim/core/size.h"

#include <gtest/gtest.h>

namespace gpucap::core {
namespace {

struct Good {
  const char* text;
  uint64_t bytes;
};

class ReadsSize : public testing::TestWithParam<Good> {};
TEST_P(ReadsSize, AsTheDocumentationSays) {
  LimitValue value;
  ASSERT_EQ(parse_limit_value(GetParam().text, &value), SizeError::kNone) << GetParam().text;
  EXPECT_FALSE(value.relative);
  EXPECT_EQ(value.bytes, GetParam().bytes) << GetParam().text;
}
INSTANTIATE_TEST_SUITE_P(
    Size, ReadsSize,
    testing::Values(Good{"4G", 4 * kGiB}, Good{"4g", 4 * kGiB}, Good{"4GiB", 4 * kGiB}, Good{"4Gi", 4 * kGiB},
                    Good{"4 GiB", 4 * kGiB}, Good{" 4G ", 4 * kGiB}, Good{"\t4G\n", 4 * kGiB}, Good{"4096M", 4 * kGiB},
                    Good{"4194304k", 4 * kGiB}, Good{"4294967296", 4 * kGiB}, Good{"4294967296B", 4 * kGiB},
                    Good{"1.5G", 3 * kGiB / 2}, Good{"1.5g", 3 * kGiB / 2}, Good{"0.5GiB", kGiB / 2},
                    Good{"4GB", 4000000000}, Good{"4gb", 4000000000}, Good{"1500MB", 1500000000},
                    Good{"2TB", 2000000000000}, Good{"1T", kGiB * 1024}, Good{"0", 0}, Good{"0m", 0}, Good{"0G", 0},
                    Good{"0.000G", 0}, Good{"1.000000001G", kGiB + 1}, Good{"1M", kMiB}, Good{"1048576", kMiB},
                    Good{"007M", 7 * kMiB}, Good{"8388608T", uint64_t{1} << 63}));

struct Bad {
  const char* text;
  SizeError error;
};
class TurnsDown : public testing::TestWithParam<Bad> {};
TEST_P(TurnsDown, WithTheReason) {
  LimitValue value;
  value.bytes = 77;
  EXPECT_EQ(parse_limit_value(GetParam().text, &value), GetParam().error) << GetParam().text;
  EXPECT_EQ(value.bytes, 77u) << "a bad text must not half-change the value";
}
INSTANTIATE_TEST_SUITE_P(
    Size, TurnsDown,
    testing::Values(
        Bad{"", SizeError::kEmpty}, Bad{"  ", SizeError::kEmpty}, Bad{"-1", SizeError::kNotASize},
        Bad{"+4G", SizeError::kNotASize}, Bad{"abc", SizeError::kNotASize}, Bad{"G", SizeError::kNotASize},
        Bad{"4X", SizeError::kNotASize}, Bad{"4GG", SizeError::kNotASize}, Bad{"4GiBs", SizeError::kNotASize},
        Bad{"4Gb/s", SizeError::kNotASize}, Bad{"1e9", SizeError::kNotASize}, Bad{"0x10", SizeError::kNotASize},
        Bad{"1,5G", SizeError::kNotASize}, Bad{"1.G", SizeError::kNotASize}, Bad{".5G", SizeError::kNotASize},
        Bad{"1.2.3G", SizeError::kNotASize}, Bad{"4 4G", SizeError::kNotASize}, Bad{"4%%", SizeError::kNotASize},
        Bad{"inf", SizeError::kNotASize}, Bad{"4", SizeError::kTooSmall}, Bad{"1023K", SizeError::kTooSmall},
        Bad{"0.0001M", SizeError::kTooSmall}, Bad{"99999999T", SizeError::kTooLarge},
        Bad{"18446744073709551616", SizeError::kTooLarge}, Bad{"99999999999999999999999", SizeError::kTooManyDigits},
        Bad{"1.0000000001G", SizeError::kTooManyDigits}, Bad{"101%", SizeError::kOverHundred},
        Bad{"100.1%", SizeError::kOverHundred}, Bad{"-5%", SizeError::kNotASize}));

TEST(Percent, IsOfThePhysicalDevice) {
  LimitValue value;
  ASSERT_EQ(parse_limit_value("50%", &value), SizeError::kNone);
  EXPECT_TRUE(value.relative);
  EXPECT_EQ(value.resolve(16 * kGiB), 8 * kGiB);
  ASSERT_EQ(parse_limit_value("100 %", &value), SizeError::kNone);
  EXPECT_EQ(value.resolve(150754820096), 150754820096u);
  ASSERT_EQ(parse_limit_value("0.5%", &value), SizeError::kNone);
  EXPECT_EQ(value.resolve(200 * kGiB), kGiB);
  ASSERT_EQ(parse_limit_value("33.3%", &value), SizeError::kNone);
  EXPECT_EQ(value.resolve(1000000), 333000u);
}

TEST(RoundUp, StaysInRangeAtTheTop) {
  EXPECT_EQ(round_up(1, 512), 512u);
  EXPECT_EQ(round_up(512, 512), 512u);
  EXPECT_EQ(round_up(UINT64_MAX, 2 * kMiB), UINT64_MAX - 2 * kMiB + 1);
}

TEST(FormatBytes, IsWhatPeopleRead) {
  EXPECT_STREQ(BytesText(0).text, "0 B");
  EXPECT_STREQ(BytesText(1023).text, "1023 B");
  EXPECT_STREQ(BytesText(static_cast<int64_t>(4 * kGiB)).text, "4.00 GiB");
  EXPECT_STREQ(BytesText(-static_cast<int64_t>(2 * kMiB)).text, "-2.00 MiB");
  EXPECT_STREQ(BytesText(INT64_MAX).text, "8.00 EiB");
  EXPECT_STREQ(BytesText(INT64_MIN).text, "-8.00 EiB");
}

}  // namespace
}  // namespace gpucap::core
