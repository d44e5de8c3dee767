// Shared by the tests of the policy: reads a text for somebody and gives the answers that they compare.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "shim/core/policy.h"

namespace gpucap::core {

inline constexpr const char* kCardA = "GPU-a1b2c3d4-0000-1111-2222-333344445555";
inline constexpr const char* kCardB = "GPU-b1b2c3d4-0000-1111-2222-333344445555";
inline constexpr uint64_t kCardBytes = 80 * kGiB;

inline const PolicyAsker kAlice{1000, "alice"};
inline const PolicyAsker kBob{1001, "bob"};
inline const PolicyAsker kNobodyKnows{1002, ""};

inline std::unique_ptr<Policy> policy_for(const PolicyAsker& asker, std::string_view text) {
  auto policy = std::make_unique<Policy>();
  read_policy(text, asker, policy.get());
  return policy;
}

inline uint64_t limit_for(const PolicyAsker& asker, std::string_view text, const char* card = kCardA) {
  return policy_for(asker, text)->for_device(0, card, kCardBytes);
}

inline uint64_t group_limit(std::string_view group, std::string_view text, const char* card = kCardA) {
  auto policy = std::make_unique<GroupPolicy>();
  read_group_policy(text, group, policy.get());
  return policy->for_device(0, card, kCardBytes);
}

inline std::string show(const PolicyProblem& problem) {
  return std::to_string(problem.line) + ":" + std::to_string(problem.column) + ": '" + problem.part + "' " +
         (problem.reason == nullptr ? "?" : problem.reason);
}

}  // namespace gpucap::core
