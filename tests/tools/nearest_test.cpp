// What is suggested for a mistyped name, and what is not.
#include "tools/common/nearest.h"

#include <gtest/gtest.h>

namespace gpucap::tools {
namespace {

TEST(EditDistance, CountsSingleSlips) {
  EXPECT_EQ(edit_distance("limit", "limit"), 0u);
  EXPECT_EQ(edit_distance("limt", "limit"), 1u) << "one left out";
  EXPECT_EQ(edit_distance("limiit", "limit"), 1u) << "one too many";
  EXPECT_EQ(edit_distance("limot", "limit"), 1u) << "one changed";
  EXPECT_EQ(edit_distance("ilmit", "limit"), 1u) << "two swapped";
  EXPECT_EQ(edit_distance("", "limit"), 5u);
  EXPECT_EQ(edit_distance("limit", ""), 5u);
}

TEST(Nearest, TakesTheNearestOrNothing) {
  const std::vector<std::string> names = {"used", "peak", "refused", "refused_bytes"};
  EXPECT_EQ(nearest("usde", names), "used");
  EXPECT_EQ(nearest("refusd", names), "refused");
  EXPECT_EQ(nearest("refused_b", names), "refused") << "two slips before eight letters";
  EXPECT_EQ(nearest("pea", names), "peak");
  EXPECT_EQ(nearest("temperature", names), "");
  EXPECT_EQ(nearest("", names), "");
}

std::string told_about(std::vector<std::string> words) {
  CLI::App app{"x"};
  bool flag = false;
  std::string text;
  app.add_flag("--json", flag);
  app.add_option("-p,--pid", text);
  CLI::App* events = app.add_subcommand("events");
  events->add_flag("--follow", flag);
  app.add_subcommand("version");
  std::reverse(words.begin(), words.end());
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return with_suggestion(app, error);
  }
  return "parsed";
}

TEST(WithSuggestion, NamesTheNearestOption) {
  EXPECT_EQ(told_about({"--jsno"}), "unknown option --jsno; did you mean --json?");
  EXPECT_EQ(told_about({"--pidd=4"}), "unknown option --pidd=4; did you mean --pid?");
  EXPECT_EQ(told_about({"--pidd", "4"}), "unknown option --pidd; did you mean --pid?");
  EXPECT_EQ(told_about({"--temperature"}), "unknown option --temperature");
}

TEST(WithSuggestion, LooksInTheChosenSubcommandFirst) {
  EXPECT_EQ(told_about({"events", "--folow"}), "unknown option --folow; did you mean --follow?");
  EXPECT_EQ(told_about({"events", "--jsn"}), "unknown option --jsn; did you mean --json?");
}

TEST(WithSuggestion, NamesTheNearestSubcommand) {
  EXPECT_EQ(told_about({"evnets"}), "unexpected word evnets; did you mean events?");
  EXPECT_EQ(told_about({"banana"}), "unexpected word banana");
}

TEST(WithSuggestion, LeavesOtherErrorsAsTheyAre) {
  EXPECT_EQ(told_about({"--pid"}).find("unknown option"), std::string::npos);
  EXPECT_NE(told_about({"--pid"}).find("--pid"), std::string::npos);
}

TEST(WithSuggestion, CleansWhatATerminalMustNotSee) {
  EXPECT_EQ(told_about({"--\x1b[2Jjson"}), "unknown option --?[2Jjson");
}

}  // namespace
}  // namespace gpucap::tools
