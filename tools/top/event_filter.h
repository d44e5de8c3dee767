// Which events are wanted: the options of `gpucap-top events` made into one question. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/top/events.h"

namespace gpucap::tools {

struct EventFilter {
  std::vector<std::string> gpus;  // ordinals or UUIDs, or the beginning of one
  std::vector<std::string> apis;  // globs, of the driver's or the runtime's function
  uint64_t at_least_bytes = 0;
  uint64_t at_most_bytes = UINT64_MAX;
  std::set<uint8_t> operations;
  std::set<int32_t> results;
  bool any_error = false;  // --result error

  [[nodiscard]] bool wants(const EventRecord& event) const;  // each kind that was given must agree

  // What the options say; false and one line if it cannot be understood.
  bool add_sizes(const std::vector<std::string>& texts, std::string* error);       // ">=64M", "<=1G", "4096"
  bool add_operations(const std::vector<std::string>& texts, std::string* error);  // "refuse,fail"
  bool add_results(const std::vector<std::string>& texts, std::string* error);  // "success", "error", a name, a number
};

// "64M", "1.5GiB", "4096": as limits are written, but down to a byte.
std::optional<uint64_t> parse_bytes(std::string_view text);

}  // namespace gpucap::tools
