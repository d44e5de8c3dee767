// Reads deny, observe, wait and wait:TIME. Called once at the start of a process, by the policy reader and by tools.
#include "shim/core/on_limit.h"

#include "shim/core/text.h"

namespace gpucap::core {
namespace {

constexpr uint64_t kMillisecond = 1000000;
constexpr uint64_t kSecond = 1000 * kMillisecond;
constexpr uint64_t kLongest = uint64_t{365} * 24 * 3600 * kSecond;

// 0 means no time: none is written so, since nobody would agree whether it is "never" or "at once".
uint64_t parse_time_ns(std::string_view text) {
  uint64_t number = 0;
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    number = number * 10 + static_cast<uint64_t>(text[digits] - '0');
    if (number > kLongest / kMillisecond) return 0;
    ++digits;
  }
  if (digits == 0) return 0;
  const std::string_view unit = text.substr(digits);
  uint64_t unit_ns = 0;
  if (equal_no_case(unit, "ms")) unit_ns = kMillisecond;
  if (unit.empty() || equal_no_case(unit, "s")) unit_ns = kSecond;
  if (equal_no_case(unit, "m")) unit_ns = 60 * kSecond;
  if (equal_no_case(unit, "h")) unit_ns = 3600 * kSecond;
  if (unit_ns == 0 || number > kLongest / unit_ns) return 0;
  return number * unit_ns;
}

}  // namespace

bool parse_on_limit(std::string_view text, OnLimitValue* value) {
  text = trim(text);
  OnLimitValue result;
  const size_t colon = text.find(':');
  const std::string_view word = trim(text.substr(0, colon));
  if (colon != std::string_view::npos) {
    if (!equal_no_case(word, "wait")) return false;
    result.wait_ns = parse_time_ns(trim(text.substr(colon + 1)));
    if (result.wait_ns == 0) return false;
    result.mode = OnLimitValue::Mode::kWait;
  } else if (equal_no_case(word, "wait")) {
    result.mode = OnLimitValue::Mode::kWait;
  } else if (equal_no_case(word, "observe")) {
    result.mode = OnLimitValue::Mode::kObserve;
  } else if (!word.empty() && !equal_no_case(word, "deny")) {
    return false;
  }
  *value = result;
  return true;
}

}  // namespace gpucap::core
