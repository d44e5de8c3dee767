// The policies that people copy can be read, and the page says of bad lines what is really said of them.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/core/policy_asked.h"

namespace gpucap::core {
namespace {

std::string file(const char* name) {
  std::ifstream stream(std::string(GPUCAP_SOURCE_DIR "/") + name);
  std::string text(std::istreambuf_iterator<char>(stream), {});
  EXPECT_FALSE(text.empty()) << name;
  return text;
}

void expect_sound(const std::string& text) {
  const auto policy = policy_for(kAlice, text);
  for (int i = 0; i < policy->problem_count; ++i) ADD_FAILURE() << show(policy->problems[i]) << "\nin\n" << text;
  EXPECT_TRUE(policy->binds()) << text;
}

// What stands between lines that begin with `open` and "```".
std::string block(const std::string& text, const std::string& open) {
  const size_t begin = text.find("\n" + open + "\n");
  if (begin == std::string::npos) return "";
  const size_t inside = begin + open.size() + 2;
  return text.substr(inside, text.find("\n```", inside) - inside);
}

TEST(PolicyDocs, ExamplesAreSound) {
  expect_sound(file("examples/gpucap.conf"));
  expect_sound(block(file("docs/policy.md"), "```ini"));
  expect_sound(block(file("man/gpucap.conf.5.scd"), "```"));
}

TEST(PolicyDocs, ExampleMeansWhatItsCommentsSay) {
  const std::string text = file("examples/gpucap.conf");
  EXPECT_EQ(limit_for({5, "eve"}, text), 16 * kGiB);
  EXPECT_EQ(limit_for({5, "alice"}, text), kCardBytes / 2);
  EXPECT_EQ(limit_for({1007, "frank"}, text), kNoLimit);
  const auto bob = policy_for({5, "bob"}, text);
  EXPECT_EQ(bob->for_device(0, kCardA, kCardBytes), 16 * kGiB);
  EXPECT_EQ(bob->group_policy.for_device(0, kCardA, kCardBytes), 24 * kGiB);
}

TEST(PolicyDocs, BadLinesAreToldOfAsThePageSays) {
  const std::string page = file("docs/policy.md");
  const std::string head = "| line | what is said of it |\n| --- | --- |\n";
  size_t at = page.find(head);
  ASSERT_NE(at, std::string::npos);
  int rows = 0;
  for (at += head.size(); page.compare(at, 3, "| `") == 0; at = page.find('\n', at) + 1, ++rows) {
    const size_t line_end = page.find("` | ", at), row_end = page.find(" |\n", line_end + 4);
    const std::string line = page.substr(at + 3, line_end - at - 3);
    const std::string said = page.substr(line_end + 4, row_end - line_end - 4);
    const auto policy = policy_for(kAlice, line);
    ASSERT_EQ(policy->problem_count, 1) << line;
    EXPECT_TRUE(policy->closed) << line;
    EXPECT_EQ(std::string(policy->problems[0].reason).rfind(said, 0), 0u) << line << ": " << show(policy->problems[0]);
    if (page.find('\n', at) == std::string::npos) break;
  }
  EXPECT_EQ(rows, 14);
}

}  // namespace
}  // namespace gpucap::core
