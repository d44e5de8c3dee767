// Reads the budget that a policy file gives to one group: from the group's own section, and from every section that
// puts its users into the group and gives a group_limit beside. The same for all members, so it asks nothing about a
// user.
#include "shim/core/policy_value.h"

namespace gpucap::core {
namespace {

class GroupReader {
 public:
  GroupReader(std::string_view group, GroupPolicy* policy) : group_(group), policy_(*policy) {}

  void read(std::string_view text) {
    PolicyLines lines(text);
    section_ = groups_of_section(lines, group_);
    PolicyLine line;
    while (lines.next(&line)) {
      if (line.opens_section) section_ = groups_of_section(lines, group_);
      const bool own = line.section == PolicySection::kGroup ? line.section_name == group_ : section_.names_wanted;
      if (line.kind == PolicyLine::Kind::kBad && (own || line.may_be_any_section))
        close(line, line.part, line.reason);
      else if (line.kind == PolicyLine::Kind::kEntry)
        read_entry(line, own);
    }
  }

 private:
  void read_entry(const PolicyLine& line, bool own) {
    const bool is_group_limit = line.key == PolicyKey::kGroupLimit;
    const bool is_budget = line.section == PolicySection::kGroup || is_group_limit;
    OnLimitValue on_limit;
    const PolicyValueError error = read_policy_value(line, &policy_.limits, &on_limit);
    if (error.reason == nullptr) {
      if (is_group_limit && section_.first.empty())
        close(line, line.text, kNoGroupBeside);
      else if (own && is_budget && !is_none(line.value) && !policy_.limits.keep())
        close(line, line.value, "is one limit too many for one group (8 at most)");
      return;
    }
    // A limit without a name may have been this group's, and so may one that is lost in what became a name.
    const bool of_any_group =
        is_group_limit ? section_.first.empty() : line.key == PolicyKey::kGroup && may_hide_entry(line.value);
    if (of_any_group || (own && (is_budget || may_hide_entry(line.value))) || may_hide_header(line.value))
      close(line, error.part, error.reason);
  }

  void close(const PolicyLine& line, std::string_view part, const char* reason) {
    if (!policy_.closed) policy_.why_closed = make_policy_problem(line, part, reason);
    policy_.closed = true;
  }

  std::string_view group_;
  GroupPolicy& policy_;
  SectionGroups section_;
};

}  // namespace

void read_group_policy(std::string_view text, std::string_view group, GroupPolicy* policy) {
  policy->closed = false;
  policy->why_closed = PolicyProblem();
  policy->limits.clear();
  GroupReader(group, policy).read(text);
}

}  // namespace gpucap::core
