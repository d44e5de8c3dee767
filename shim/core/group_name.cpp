// The one place that says what a group's name may be. Called wherever a name comes in from outside.
#include "shim/core/group_name.h"

namespace gpucap::core {

bool is_group_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxGroupName || name.front() == '.' || name.front() == '-') return false;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    if (!letter && !digit && c != '.' && c != '_' && c != '-') return false;
  }
  return true;
}

}  // namespace gpucap::core
