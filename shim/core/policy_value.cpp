// Judges the values of a policy file with the readers that the environment's values have, and is stricter where a user
// could bend them: a device has to be named by what no process can change.
#include "shim/core/policy_value.h"

namespace gpucap::core {

PolicyValueError read_policy_value(const PolicyLine& line, LimitSets* sets, OnLimitValue* on_limit) {
  if (line.value.empty()) return {line.text, "has no value"};
  switch (line.key) {
    case PolicyKey::kOnLimit:
      if (parse_on_limit(line.value, on_limit)) return {};
      return {line.value, "is not deny, wait, wait:TIME (as 30s, 500ms, 5m, 2h) or observe"};
    case PolicyKey::kGroup:
      if (is_none(line.value) || is_group_name(line.value)) return {};
      return {line.value, kGroupNameReason};
    case PolicyKey::kLimit:
    case PolicyKey::kGroupLimit:
      break;
  }
  if (is_none(line.value)) return {};
  LimitError error;
  if (!sets->read(line.value, &error)) {
    const size_t at = line.value.find(error.part);
    if (error.part[0] == '\0' || at == std::string_view::npos) return {line.value, error.reason};
    return {line.value.substr(at, std::string_view(error.part).size()), error.reason};
  }
  for (int i = 0; i < sets->just_read().count(); ++i)
    if (sets->just_read().rule(i).key == LimitRule::Key::kOrdinal)
      return {line.value, "gives a device by number, which CUDA_VISIBLE_DEVICES changes; write GPU-<uuid> or *"};
  return {};
}

bool names_group(const PolicyLine& line) {
  return line.kind == PolicyLine::Kind::kEntry && line.key == PolicyKey::kGroup && !is_none(line.value) &&
         is_group_name(line.value);
}

SectionGroups groups_of_section(PolicyLines lines, std::string_view wanted) {
  SectionGroups found;
  PolicyLine line;
  while (lines.next(&line) && !line.opens_section) {
    if (!names_group(line)) continue;
    if (found.first.empty()) found.first = line.value;
    if (line.value == wanted) found.names_wanted = true;
  }
  return found;
}

PolicyProblem make_policy_problem(const PolicyLine& line, std::string_view part, const char* reason) {
  PolicyProblem problem;
  problem.line = line.number;
  problem.column =
      part.data() == nullptr || line.text.data() == nullptr ? 1 : static_cast<int>(part.data() - line.text.data()) + 1;
  problem.reason = reason;
  const size_t n = part.size() < sizeof(problem.part) - 1 ? part.size() : sizeof(problem.part) - 1;
  for (size_t i = 0; i < n; ++i)  // it goes to a terminal
    problem.part[i] = part[i] < ' ' || part[i] > '~' ? '?' : part[i];
  return problem;
}

}  // namespace gpucap::core
