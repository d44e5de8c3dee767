// What the environment of a program under gpucap says, judged by the library's own parsers: before a start, where the
// person at the keyboard can still correct it, and by `gpucap check`. Reads the environment; changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shim/core/limits.h"
#include "shim/core/on_limit.h"

namespace gpucap::tools {

// An environment variable, or an empty text where it is unset.
std::string environment(const char* name);

// Each returns what is wrong with the text and what would be right, or nothing. Empty text is right: nothing is set.
std::optional<std::string> problem_of_limit(const std::string& text, core::LimitRules* rules);
std::optional<std::string> problem_of_group(const std::string& text);
std::optional<std::string> problem_of_on_limit(const std::string& text, core::OnLimitValue* value);
// "30s", "5m", "500ms", "2h"; a number alone is seconds.
std::optional<std::string> problem_of_time(const std::string& text, uint64_t* ns);
// One size, such as 8G or 50%.
std::optional<std::string> problem_of_size(const std::string& text, core::LimitValue* value);

// True where GPUCAP_DISABLE makes the library do nothing.
bool disabled_by_environment();

}  // namespace gpucap::tools
