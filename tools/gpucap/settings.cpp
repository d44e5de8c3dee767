// Judging settings: see settings.h.
#include "tools/gpucap/settings.h"

#include <cstdlib>

#include "shim/core/group_name.h"

namespace gpucap::tools {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::optional<std::string> problem_of_limit(const std::string& text, core::LimitRules* rules) {
  core::LimitError error;
  if (rules->parse(text, &error)) return std::nullopt;
  return "the limit '" + text + "' cannot be used: '" + error.part + "' " + error.reason + "; " + core::kLimitHelp;
}

std::optional<std::string> problem_of_group(const std::string& text) {
  if (text.empty() || core::is_group_name(text)) return std::nullopt;
  return "the group '" + text + "' cannot be used: " + core::kGroupNameHelp;
}

std::optional<std::string> problem_of_on_limit(const std::string& text, core::OnLimitValue* value) {
  if (core::parse_on_limit(text, value)) return std::nullopt;
  return "'" + text + "' is not what can be done with a request that does not fit; " + core::kOnLimitHelp;
}

std::optional<std::string> problem_of_time(const std::string& text, uint64_t* ns) {
  core::OnLimitValue value;
  if (!core::parse_on_limit("wait:" + text, &value) || value.wait_ns == 0) {
    return "'" + text + "' is not a time; write for example 30s, 500ms, 5m or 2h";
  }
  *ns = value.wait_ns;
  return std::nullopt;
}

std::optional<std::string> problem_of_size(const std::string& text, core::LimitValue* value) {
  const core::SizeError error = core::parse_limit_value(text, value);
  if (error == core::SizeError::kNone) return std::nullopt;
  return "the size '" + text + "' cannot be used: it " + core::to_text(error) + "; write for example 4G, 1.5GiB or 50%";
}

bool disabled_by_environment() {
  const std::string value = environment("GPUCAP_DISABLE");
  return !value.empty() && value != "0";
}

}  // namespace gpucap::tools
