// What reading a policy for a user and reading one for a group have in common: whether a value can be read, which
// groups a section names, and how a problem is put down. Called by policy.cpp and group_policy.cpp alone. Pure.
#pragma once

#include <string_view>

#include "shim/core/on_limit.h"
#include "shim/core/policy.h"
#include "shim/core/policy_lines.h"

namespace gpucap::core {

// What is wrong with the value of an entry; no reason where nothing is.
struct PolicyValueError {
  std::string_view part;
  const char* reason = nullptr;
};

// A limit is left in `sets` as just read; `none` and what is not a limit leave nothing to keep.
PolicyValueError read_policy_value(const PolicyLine& line, LimitSets* sets, OnLimitValue* on_limit);

// Which groups the section names whose first line `lines` has next.
struct SectionGroups {
  std::string_view first;  // empty: none that can be read
  bool names_wanted = false;
};
SectionGroups groups_of_section(PolicyLines lines, std::string_view wanted);

// Whether the line names a group: an entry `group` that can be read and is not none.
bool names_group(const PolicyLine& line);

PolicyProblem make_policy_problem(const PolicyLine& line, std::string_view part, const char* reason);

inline constexpr const char* kNoGroupBeside =
    "has no readable group = NAME in its section, so it is not known whose it is";

}  // namespace gpucap::core
