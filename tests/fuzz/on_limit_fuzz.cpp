// Any text as GPUCAP_ON_LIMIT: refused and nothing changed, or a mode with a time that can be.
#include "shim/core/on_limit.h"
#include "tests/fuzz/fuzz.h"

namespace gpucap::fuzz {

std::vector<std::string> seeds() {
  return {"", "deny", "wait", "observe", "wait:30s", "wait:500ms", "Wait : 2h", "wait:90", "wait:0", "deny:5", "wait:"};
}

std::vector<std::string> pieces() {
  return {"deny", "wait", "observe", ":", "ms", "s", "m", "h", "0", "31536000", "8760h", "99999999999999999999"};
}

}  // namespace gpucap::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using gpucap::core::OnLimitValue;
  using gpucap::fuzz::require;
  constexpr uint64_t kYear = uint64_t{365} * 24 * 3600 * 1000000000;
  OnLimitValue value{OnLimitValue::Mode::kObserve, 77};
  if (!gpucap::core::parse_on_limit(gpucap::fuzz::text_of(data, bytes), &value)) {
    require(value.mode == OnLimitValue::Mode::kObserve && value.wait_ns == 77, "a bad mode changes nothing");
    return 0;
  }
  require(value.mode <= OnLimitValue::Mode::kObserve, "a mode is one of three");
  require(value.wait_ns <= kYear && value.wait_ns % 1000000 == 0, "a wait is whole milliseconds of at most a year");
  require(value.wait_ns == 0 || value.mode == OnLimitValue::Mode::kWait, "only a wait has a time");
  return 0;
}
