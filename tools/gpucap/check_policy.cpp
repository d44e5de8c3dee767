// `gpucap check`, the administrator's policy file: whether it is sound, and what it says to this user.
#include <unistd.h>

#include "tools/common/format.h"
#include "tools/gpucap/check_command.h"
#include "tools/gpucap/policy_file.h"

namespace gpucap::tools {

void check_policy(const CheckOptions& options, Findings* findings) {
  const bool in_force = options.policy_path.empty();
  const std::string path = in_force ? core::kPolicyPath : options.policy_path;
  const PolicyFile file = read_policy_file(path);
  if (!file.there) {
    if (in_force) {
      findings->ok("policy", path + " does not exist: the environment alone decides");
    } else {
      findings->fail("policy", path + " does not exist");
    }
    return;
  }
  // A draft need not be root's yet.
  if (!file.problem.empty() && (in_force || file.text.empty())) findings->fail("policy", path + ": " + file.problem);
  const auto policy = policy_of(file, getuid());
  for (int i = 0; i < policy->problem_count; ++i) {
    findings->fail("policy", policy_problem_text(path, policy->problems[i]));
  }
  if (policy->problems_left_out > 0) {
    findings->fail("policy", path + ": " + std::to_string(policy->problems_left_out) + " more problems");
  }
  std::string says;
  if (policy->closed) {
    says = "nothing may be allocated, since a line cannot be read";
  } else if (!policy->limits.empty()) {
    says = "a limit";
  }
  if (policy->group[0] != '\0') says += (says.empty() ? "" : ", ") + std::string("group ") + policy->group;
  if (policy->has_on_limit) {
    const char* const kModes[] = {"deny", "wait", "observe"};
    says += (says.empty() ? "" : ", ") + std::string(kModes[static_cast<int>(policy->on_limit.mode)]) +
            " what does not fit";
  }
  findings->ok("policy", path + " asks of you: " + (says.empty() ? "nothing" : says));
}

}  // namespace gpucap::tools
