// Any text as the policy file: problems that can be shown and found, closed where it says so, and the same whatever was
// read before. That damage never loosens is tests/core/policy_damage_test.cpp's.
#include <algorithm>

#include "shim/core/policy.h"
#include "tests/fuzz/fuzz.h"

namespace gpucap::fuzz {

std::vector<std::string> seeds() {
  return {"", "limit = 4G\n",
          "# all\n[default]\nlimit = 16G # each\non_limit = wait:30s\ngroup = all\ngroup_limit = 30G\n"
          "[user alice]\nlimit = 50%\n[user 1000]\nlimit=GPU-a1b2=4G,*=2G\r\ngroup = none\n"
          "[user bob]\ngroup = team\n[group team]\nlimit = 24G\n",
          "\xef\xbb\xbf[user alice]\nlimt = 4G\n[group team]\non_limit = deny\n[user x",
          "[user alice]\ngroup_limit = 4G\n[default]\nlimit = 4G\nlimit = none\nlimit = 2G\n"};
}

std::vector<std::string> pieces() {
  return {"[default]",
          "[user alice]",
          "[user 1000]",
          "[group team]",
          "\n",
          "\r\n",
          "limit = 4G\n",
          "on_limit = wait\n",
          "group = team\n",
          "group_limit = 8G\n",
          "none",
          " # ",
          ";",
          "=",
          "[",
          "]",
          "\xef\xbb\xbf",
          "limit",
          "group"};
}

namespace {

using namespace gpucap::core;

constexpr const char* kCard = "GPU-a1b2c3d4-0000-1111-2222-333344445555";

// `problem` names a place inside `text`.
void require_problem(std::string_view text, const PolicyProblem& problem) {
  require(problem.reason != nullptr, "a problem has a reason");
  require_shown(problem.part, "the bad part of a policy can be shown");
  require(problem.line >= 1 && problem.column >= 1, "a problem has a place");
  for (int line = 1; line < problem.line; ++line) {
    const size_t end = text.find('\n');
    require(end != std::string_view::npos, "a problem's line is one of the file's");
    text.remove_prefix(end + 1);
  }
  const size_t length = std::min(text.find('\n'), text.size());
  require(static_cast<size_t>(problem.column) <= length + 1, "a problem's column is one of its line's");
}

void read_for(std::string_view text, const PolicyAsker& asker, Policy* policy) {
  read_policy(text, asker, policy);
  require(policy->problem_count >= 0 && policy->problem_count <= Policy::kMaxProblems, "at most eight problems");
  require(policy->problems_left_out == 0 || policy->problem_count == Policy::kMaxProblems, "left out is beyond eight");
  for (int i = 0; i < policy->problem_count; ++i) require_problem(text, policy->problems[i]);
  require(policy->group[0] == '\0' || is_group_name(policy->group), "a group has a name");
  require(policy->closed || !policy->group_policy.closed, "who is in a closed group is closed");
  if (policy->closed) {
    require_problem(text, policy->why_closed);
    require(policy->binds() && policy->for_device(0, kCard, 80 * kGiB) == 0, "closed is a limit of 0");
  }
  const OnLimitValue observe{OnLimitValue::Mode::kObserve, 0};
  if (policy->for_device(0, kCard, 80 * kGiB) != kNoLimit && !policy->has_on_limit)
    require(policy->on_limit_with(&observe).mode != OnLimitValue::Mode::kObserve, "a process observes no limit away");
}

}  // namespace
}  // namespace gpucap::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace gpucap::fuzz;
  static Policy policy;
  static GroupPolicy group;
  const std::string_view text = text_of(data, bytes);
  const std::string_view seen = text.starts_with("\xef\xbb\xbf") ? text.substr(3) : text;
  for (const PolicyAsker& asker : {PolicyAsker{1000, "alice"}, PolicyAsker{1001, "bob"}, PolicyAsker{1002, ""}}) {
    read_for(text, asker, &policy);
    const uint64_t before = policy.for_device(0, kCard, 80 * kGiB);
    const int problems = policy.problem_count + policy.problems_left_out;
    // A line that may have been any section's, put before all others.
    const std::string worse = "no line of a policy\n" + std::string(seen);
    read_for(worse, asker, &policy);
    require(policy.closed, "a line that may be any section's closes to everybody");
    read_for(text, asker, &policy);
    require(policy.for_device(0, kCard, 80 * kGiB) == before, "a reading does not depend on the one before");
    require(policy.problem_count + policy.problems_left_out == problems, "nor do its problems");
  }
  read_group_policy(text, "team", &group);
  if (group.closed) {
    require_problem(text, group.why_closed);
    require(group.for_device(0, kCard, 80 * kGiB) == 0, "a closed budget is 0");
  }
  return 0;
}
