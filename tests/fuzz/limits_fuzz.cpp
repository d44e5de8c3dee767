// Any text as GPUCAP_LIMIT: refused with a reason and nothing left in force, or rules that give figures that can be.
#include "shim/core/limits.h"
#include "tests/fuzz/fuzz.h"

namespace gpucap::fuzz {

std::vector<std::string> seeds() {
  return {"",
          "4G",
          " 1.5 GiB ",
          "50%",
          "0=4G,1=8G",
          "GPU-a1b2c3d4=4G,*=2G",
          "MIG-0123-4567=1T",
          "0.0001%",
          "999999999999",
          "0",
          "4X",
          "0=4G,",
          "0=4G,0=8G",
          "9223372036854775808"};
}

std::vector<std::string> pieces() {
  return {"4G", "1.5GiB", "50%", "0=", "GPU-a1b2=", "MIG-", "*=", ",", "=", ".", "%", "KB", "99999999999999999999"};
}

}  // namespace gpucap::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace gpucap::core;
  using gpucap::fuzz::require;
  constexpr uint64_t kCardBytes = 80 * kGiB;
  static LimitRules rules;
  LimitError error;
  const bool good = rules.parse(gpucap::fuzz::text_of(data, bytes), &error);
  require(rules.count() >= 0 && rules.count() <= kMaxLimitRules, "a limit has at most 64 rules");
  if (!good) {
    require(rules.empty(), "a bad limit leaves no rules");
    require(error.reason != nullptr, "a bad limit has a reason");
    gpucap::fuzz::require_shown(error.part, "the bad part of a limit can be shown");
    return 0;
  }
  for (int i = 0; i < rules.count(); ++i) {
    const LimitValue& value = rules.rule(i).value;
    require(value.resolve(kCardBytes) <= uint64_t{1} << 63, "a limit is at most 2^63 bytes");
    require(!value.relative || value.resolve(kCardBytes) <= kCardBytes, "a share is at most the whole");
    require(value.relative || value.bytes == 0 || value.bytes >= kMiB, "a limit is 0 or at least 1 MiB");
  }
  const uint64_t limit = rules.for_device(0, "GPU-a1b2c3d4-0000-1111-2222-333344445555", kCardBytes);
  require(rules.empty() ? limit == kNoLimit : limit == kNoLimit || limit <= uint64_t{1} << 63, "a limit is a figure");
  return 0;
}
