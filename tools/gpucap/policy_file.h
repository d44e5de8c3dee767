// The administrator's policy file as the tools see it. Reads only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "shim/core/policy.h"

namespace gpucap::tools {

struct PolicyFile {
  bool there = false;
  std::string problem;  // why it cannot be read, or should not be trusted
  std::string text;
};
PolicyFile read_policy_file(const std::string& path);

// What the file says to a user, by uid and name. On the heap: it is large.
std::unique_ptr<core::Policy> policy_of(const PolicyFile& file, uint32_t uid);
std::unique_ptr<core::GroupPolicy> policy_of_group(const PolicyFile& file, const std::string& group);

// "/etc/gpucap.conf:3:7: 'limt' is no key".
std::string policy_problem_text(const std::string& path, const core::PolicyProblem& problem);

}  // namespace gpucap::tools
