#include "shim/core/on_limit.h"

#include <gtest/gtest.h>

#include <string>

namespace gpucap::core {
namespace {

using Mode = OnLimitValue::Mode;
constexpr uint64_t kSecond = 1000000000;

struct Good {
  const char* text;
  Mode mode;
  uint64_t wait_ns;
};
class GoodOnLimit : public testing::TestWithParam<Good> {};
TEST_P(GoodOnLimit, IsRead) {
  OnLimitValue value{Mode::kObserve, 77};
  ASSERT_TRUE(parse_on_limit(GetParam().text, &value)) << GetParam().text;
  EXPECT_EQ(value.mode, GetParam().mode) << GetParam().text;
  EXPECT_EQ(value.wait_ns, GetParam().wait_ns) << GetParam().text;
}
INSTANTIATE_TEST_SUITE_P(
    OnLimit, GoodOnLimit,
    testing::Values(Good{"", Mode::kDeny, 0}, Good{"  ", Mode::kDeny, 0}, Good{"deny", Mode::kDeny, 0},
                    Good{" Deny\n", Mode::kDeny, 0}, Good{"observe", Mode::kObserve, 0},
                    Good{"OBSERVE", Mode::kObserve, 0}, Good{"wait", Mode::kWait, 0},
                    Good{"wait:30s", Mode::kWait, 30 * kSecond}, Good{"wait:500ms", Mode::kWait, kSecond / 2},
                    Good{"wait:5m", Mode::kWait, 300 * kSecond}, Good{"wait:2h", Mode::kWait, 7200 * kSecond},
                    Good{"wait:90", Mode::kWait, 90 * kSecond}, Good{"Wait : 3S", Mode::kWait, 3 * kSecond},
                    Good{"wait:007", Mode::kWait, 7 * kSecond},
                    Good{"wait:8760h", Mode::kWait, 8760 * 3600 * kSecond}));

class BadOnLimit : public testing::TestWithParam<const char*> {};
TEST_P(BadOnLimit, IsRefusedAndChangesNothing) {
  OnLimitValue value{Mode::kObserve, 77};
  EXPECT_FALSE(parse_on_limit(GetParam(), &value)) << GetParam();
  EXPECT_EQ(value.mode, Mode::kObserve);
  EXPECT_EQ(value.wait_ns, 77u);
}
INSTANTIATE_TEST_SUITE_P(OnLimit, BadOnLimit,
                         testing::Values("block", "wai", "waits", "denyy", ":", ":5s", "deny:5s", "observe:5s", "wait:",
                                         "wait: ", "wait:0", "wait:0s", "wait:-1", "wait:+1", "wait:1.5s", "wait:s",
                                         "wait:5d", "wait:5 s", "wait:5sec", "wait:5s:6s", "wait:8761h", "wait:0x10",
                                         "wait:99999999999999999999999", "wait 5s", "wait=5s", "1", "deny,wait"));

TEST(OnLimit, ANulIsNotTheEndOfTheText) {
  OnLimitValue value;
  EXPECT_FALSE(parse_on_limit(std::string("deny\0x", 6), &value));
}

}  // namespace
}  // namespace gpucap::core
