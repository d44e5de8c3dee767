#include "shim/core/group_name.h"

#include <gtest/gtest.h>

#include <string>

namespace gpucap::core {
namespace {

TEST(GroupName, MayHaveLettersDigitsDotsDashesAndUnderscores) {
  for (const char* name : {"a", "Team-A", "team_a.2", "0", "_x", "a-", "a.", "a..b"})
    EXPECT_TRUE(is_group_name(name)) << name;
}

TEST(GroupName, IsNothingThatAFileSystemOrATerminalTakesSpecially) {
  for (const char* name : {"", ".", "..", ".a", "-a", "a/b", "a b", " a", "a\n", "a\x1b", "a:b", "a*", "\xc3\xa4"})
    EXPECT_FALSE(is_group_name(name)) << name;
  EXPECT_FALSE(is_group_name(std::string("a\0b", 3)));
}

TEST(GroupName, IsAtMost63Long) {
  EXPECT_TRUE(is_group_name(std::string(63, 'a')));
  EXPECT_FALSE(is_group_name(std::string(64, 'a')));
}

// Every byte, first and later: the two lists of the header, spelt out once more in another way.
TEST(GroupName, EveryOtherByteIsRefused) {
  const std::string later = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  const std::string first = later.substr(0, 62) + "_";
  for (int c = 0; c < 256; ++c) {
    const auto byte = static_cast<char>(c);
    EXPECT_EQ(is_group_name(std::string(1, byte)), first.find(byte) != std::string::npos) << c;
    EXPECT_EQ(is_group_name(std::string("a") + byte), later.find(byte) != std::string::npos) << c;
  }
}

}  // namespace
}  // namespace gpucap::core
