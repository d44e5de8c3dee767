// What the administrator's policy file asks of one user's processes, and of a group's. Pure: the caller reads the file,
// knows the user, and tells of the problems. Called once, when a process first uses CUDA, and by the tools.
//
// What cannot be read is read in the strictest way: it closes the policy (limit 0) for everybody whom the line may have
// concerned. So damage to a line that is noticed never gives anybody more than the undamaged line did. docs/policy.md
// has the grammar.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "shim/core/group_name.h"
#include "shim/core/limits.h"
#include "shim/core/on_limit.h"

namespace gpucap::core {

inline constexpr const char* kPolicyPath = "/etc/gpucap.conf";
// A longer text closes the policy for everybody: hand over more than this, or all of it.
inline constexpr size_t kMaxPolicyBytes = size_t{1} << 20;
inline constexpr int kMaxLimitSets = 8;

struct PolicyAsker {
  uint32_t uid = 0;
  // Empty if unknown: any section for a user by name may then be this user's, so its limits hold as well.
  std::string_view user_name;
};

// Limits that hold at the same time; the lowest counts on each device. Some 45 KiB: not for somebody else's stack.
class LimitSets {
 public:
  void clear() { count_ = 0; }
  // Reads a limit without letting it hold yet, then lets it. keep() is false when there are kMaxLimitSets already.
  [[nodiscard]] bool read(std::string_view text, LimitError* error) { return sets_[count_].parse(text, error); }
  [[nodiscard]] const LimitRules& just_read() const { return sets_[count_]; }
  [[nodiscard]] bool keep();

  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] uint64_t for_device(uint32_t ordinal, std::string_view uuid_text, uint64_t physical_bytes) const;

 private:
  LimitRules sets_[kMaxLimitSets + 1];  // the last one only ever for reading
  int count_ = 0;
};

// To be shown as PATH:line:column: 'part' reason.
struct PolicyProblem {
  int line = 0;    // 1-based; 0: no problem
  int column = 0;  // 1-based, in bytes
  char part[64] = {};
  const char* reason = nullptr;
};

// The budget of one group: the lowest of its own section and of each group_limit that stands beside its name.
struct GroupPolicy {
  bool closed = false;  // a line that may have concerned the group cannot be read: its budget is 0
  PolicyProblem why_closed;
  LimitSets limits;

  [[nodiscard]] uint64_t for_device(uint32_t ordinal, std::string_view uuid_text, uint64_t physical_bytes) const {
    return closed ? 0 : limits.for_device(ordinal, uuid_text, physical_bytes);
  }
};

struct Policy {
  bool closed = false;  // a line that may have concerned this user cannot be read: the limit is 0
  PolicyProblem why_closed;
  LimitSets limits;
  char group[kMaxGroupName + 1] = {};  // that the user's processes must be in; empty: none is asked for
  GroupPolicy group_policy;            // of that group
  bool has_on_limit = false;
  OnLimitValue on_limit;

  // Of the whole file, whomever they concern, in the order of its lines.
  static constexpr int kMaxProblems = 8;
  PolicyProblem problems[kMaxProblems];
  int problem_count = 0;
  int problems_left_out = 0;

  // Whether the file asks anything of this user.
  [[nodiscard]] bool binds() const { return closed || !limits.empty() || group[0] != '\0' || has_on_limit; }
  // kNoLimit where the file sets none.
  [[nodiscard]] uint64_t for_device(uint32_t ordinal, std::string_view uuid_text, uint64_t physical_bytes) const {
    return closed ? 0 : limits.for_device(ordinal, uuid_text, physical_bytes);
  }
  // What happens at the file's limits where the process asks for `asked` (nullptr: for nothing). A process may make
  // the file's word stricter, never laxer; in particular it cannot make a limit of the file one that is only observed.
  [[nodiscard]] OnLimitValue on_limit_with(const OnLimitValue* asked) const;
};

// Fills all of *policy. An empty text asks nothing of anybody.
void read_policy(std::string_view text, const PolicyAsker& asker, Policy* policy);

// Fills all of *policy for one group, for a process that is in it by its own choice (GPUCAP_GROUP).
void read_group_policy(std::string_view text, std::string_view group, GroupPolicy* policy);

}  // namespace gpucap::core
