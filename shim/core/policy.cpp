// Reads a policy file for one user. Goes over the text a few times instead of keeping parts of it, so that it needs no
// memory; each pass, with its looks ahead at sections, takes time in proportion to the text.
#include "shim/core/policy.h"

#include "shim/core/policy_value.h"

namespace gpucap::core {
namespace {

// Deny is strictest, then the shorter wait; to observe is laxest.
bool is_stricter(const OnLimitValue& a, const OnLimitValue& b) {
  if (a.mode != b.mode) return a.mode < b.mode;
  return a.wait_ns != 0 && (b.wait_ns == 0 || a.wait_ns < b.wait_ns);
}

enum class Bearing { kNone, kDefault, kOwn, kPerhapsOwn };

Bearing bearing_of(const PolicyLine& line, const PolicyAsker& asker) {
  if (line.section == PolicySection::kDefault) return Bearing::kDefault;
  if (line.section != PolicySection::kUser) return Bearing::kNone;
  uint32_t uid = 0;
  const bool is_uid = parse_uid(line.section_name, &uid);
  if ((is_uid && uid == asker.uid) || (!asker.user_name.empty() && line.section_name == asker.user_name))
    return Bearing::kOwn;
  return !is_uid && asker.user_name.empty() ? Bearing::kPerhapsOwn : Bearing::kNone;
}

class UserReader {
 public:
  UserReader(std::string_view text, const PolicyAsker& asker, Policy* policy)
      : text_(text), asker_(asker), policy_(*policy) {}
  void read();

 private:
  void find_overrides();
  [[nodiscard]] bool concerns(Bearing bearing, PolicyKey key) const;
  void read_entry(const PolicyLine& line, const SectionGroups& groups);
  void apply(const PolicyLine& line, Bearing bearing, const OnLimitValue& on_limit);
  void report(const PolicyLine& line, std::string_view part, const char* reason, bool closes);
  void close(const PolicyProblem& why);

  std::string_view text_;
  const PolicyAsker& asker_;
  Policy& policy_;
  bool overridden_[kPolicyKeys] = {};
  std::string_view group_;
};

void UserReader::close(const PolicyProblem& why) {
  if (!policy_.closed) policy_.why_closed = why;
  policy_.closed = true;
}

void UserReader::report(const PolicyLine& line, std::string_view part, const char* reason, bool closes) {
  const PolicyProblem problem = make_policy_problem(line, part, reason);
  if (policy_.problem_count < Policy::kMaxProblems)
    policy_.problems[policy_.problem_count++] = problem;
  else
    ++policy_.problems_left_out;
  if (closes) close(problem);
}

void UserReader::find_overrides() {
  PolicyLines lines(text_);
  PolicyLine line;
  std::string_view own_group, default_group;
  while (lines.next(&line)) {
    if (line.kind != PolicyLine::Kind::kEntry) continue;
    const Bearing bearing = bearing_of(line, asker_);
    if (bearing == Bearing::kOwn) overridden_[static_cast<int>(line.key)] = true;
    if (!names_group(line)) continue;
    if (bearing == Bearing::kOwn && own_group.empty()) own_group = line.value;
    if (bearing == Bearing::kDefault && default_group.empty()) default_group = line.value;
  }
  group_ = overridden_[static_cast<int>(PolicyKey::kGroup)] ? own_group : default_group;
}

// A group_limit belongs to the group beside it, so it goes with that.
bool UserReader::concerns(Bearing bearing, PolicyKey key) const {
  if (key == PolicyKey::kGroupLimit) key = PolicyKey::kGroup;
  if (bearing == Bearing::kDefault) return !overridden_[static_cast<int>(key)];
  return bearing != Bearing::kNone;
}

void UserReader::read() {
  find_overrides();
  PolicyLines lines(text_);
  SectionGroups groups = groups_of_section(lines, group_);
  PolicyLine line;
  while (lines.next(&line)) {
    if (line.opens_section) groups = groups_of_section(lines, group_);
    if (line.kind == PolicyLine::Kind::kBad) {
      report(line, line.part, line.reason, line.may_be_any_section || bearing_of(line, asker_) != Bearing::kNone);
    } else if (line.kind == PolicyLine::Kind::kEntry) {
      read_entry(line, groups);
    }
  }
  if (group_.empty()) return;
  group_.copy(policy_.group, kMaxGroupName);
  policy_.group[group_.size()] = '\0';
  read_group_policy(text_, group_, &policy_.group_policy);
  if (policy_.group_policy.closed) close(policy_.group_policy.why_closed);
}

void UserReader::read_entry(const PolicyLine& line, const SectionGroups& groups) {
  const Bearing bearing = bearing_of(line, asker_);
  const bool concerned = concerns(bearing, line.key);
  OnLimitValue on_limit;
  const PolicyValueError error = read_policy_value(line, &policy_.limits, &on_limit);
  if (error.reason != nullptr) {
    const bool other_keys = may_hide_entry(line.value) && bearing != Bearing::kNone;
    report(line, error.part, error.reason, concerned || other_keys || may_hide_header(line.value));
  } else if (line.key == PolicyKey::kGroupLimit && groups.first.empty()) {
    report(line, line.text, kNoGroupBeside, concerned);
  } else if (line.key == PolicyKey::kGroup && !is_none(line.value) && line.value != groups.first) {
    report(line, line.value, "is a second group in one section", concerned);
  } else if (concerned) {
    apply(line, bearing, on_limit);
  }
}

void UserReader::apply(const PolicyLine& line, Bearing bearing, const OnLimitValue& on_limit) {
  switch (line.key) {
    case PolicyKey::kLimit:
      if (!is_none(line.value) && !policy_.limits.keep())
        report(line, line.value, "is one limit too many for one user (8 at most)", true);
      return;
    case PolicyKey::kOnLimit:
      if (!policy_.has_on_limit || is_stricter(on_limit, policy_.on_limit)) policy_.on_limit = on_limit;
      policy_.has_on_limit = true;
      return;
    case PolicyKey::kGroup:
      if (is_none(line.value) || line.value == group_) return;
      if (bearing == Bearing::kPerhapsOwn)
        close(make_policy_problem(line, line.value,
                                  "is the group of a user by name, and the name of this process's user is not known"));
      else
        report(line, line.value, "is a second group for one user", true);
      return;
    case PolicyKey::kGroupLimit:
      return;  // read with the group
  }
}

}  // namespace

bool LimitSets::keep() {
  if (count_ == kMaxLimitSets) return false;
  ++count_;
  return true;
}

uint64_t LimitSets::for_device(uint32_t ordinal, std::string_view uuid_text, uint64_t physical_bytes) const {
  uint64_t lowest = kNoLimit;
  for (int i = 0; i < count_; ++i) {
    const uint64_t bytes = sets_[i].for_device(ordinal, uuid_text, physical_bytes);
    if (bytes < lowest) lowest = bytes;
  }
  return lowest;
}

OnLimitValue Policy::on_limit_with(const OnLimitValue* asked) const {
  if (has_on_limit) return asked != nullptr && is_stricter(*asked, on_limit) ? *asked : on_limit;
  const bool limits_something = closed || !limits.empty() || !group_policy.limits.empty();
  if (asked == nullptr || (limits_something && asked->mode == OnLimitValue::Mode::kObserve)) return OnLimitValue();
  return *asked;
}

void read_policy(std::string_view text, const PolicyAsker& asker, Policy* policy) {
  policy->closed = false;
  policy->why_closed = PolicyProblem();
  policy->limits.clear();
  policy->group[0] = '\0';
  policy->group_policy.closed = false;
  policy->group_policy.limits.clear();
  policy->has_on_limit = false;
  policy->on_limit = OnLimitValue();
  policy->problem_count = 0;
  policy->problems_left_out = 0;
  UserReader(text, asker, policy).read();
}

}  // namespace gpucap::core
