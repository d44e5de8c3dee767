// Which names a group may have (GPUCAP_GROUP, --group, the policy file). A name becomes part of a file's name and is
// shown on terminals, so few characters are allowed. Pure; used by the library and by the tools.
#pragma once

#include <cstddef>
#include <string_view>

namespace gpucap::core {

inline constexpr size_t kMaxGroupName = 63;

// 1 to 63 of A-Z a-z 0-9 . _ - and not starting with '.' or '-'. Letter case counts: two spellings are two groups.
[[nodiscard]] bool is_group_name(std::string_view name);

// What to tell someone whose name is not one, after the name itself; and alone.
inline constexpr const char* kGroupNameReason =
    "is not a group's name (1 to 63 of A-Z a-z 0-9 . _ - and not starting with '.' or '-')";
inline constexpr const char* kGroupNameHelp =
    "a group's name is 1 to 63 of A-Z a-z 0-9 . _ - and does not start with '.' or '-'";

}  // namespace gpucap::core
