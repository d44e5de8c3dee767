// What happens to a request that does not fit, as people write it (GPUCAP_ON_LIMIT, --on-limit, the policy file).
// Pure: no clock, no environment, no allocation. Used by the library and by the tools.
#pragma once

#include <cstdint>
#include <string_view>

namespace gpucap::core {

struct OnLimitValue {
  enum class Mode : uint8_t {
    kDeny,     // out of memory at once
    kWait,     // blocks until it fits
    kObserve,  // granted, and recorded as one that would have been refused
  };
  Mode mode = Mode::kDeny;
  uint64_t wait_ns = 0;  // of kWait; 0: without bound
};

// Grammar, any letter case, blanks around it and around the colon ignored:
//   "" | deny | observe | wait [ ":" digits [ ms | s | m | h ] ]
// Empty or blank is deny, the default. A bare number is seconds. A time is above zero and at most 365 days.
// Returns false and leaves *value alone on anything else.
[[nodiscard]] bool parse_on_limit(std::string_view text, OnLimitValue* value);

// What to tell someone whose value could not be read.
inline constexpr const char* kOnLimitHelp =
    "write deny, observe, wait, or wait with a longest time: wait:30s, wait:500ms, wait:5m, wait:2h";

}  // namespace gpucap::core
