// What GPUCAP_LIMIT says, as rules: one for every device, or one a device by ordinal or UUID. Pure: the caller reads
// the environment and knows the devices. Holds everything in place, allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "shim/core/size.h"

namespace gpucap::core {

inline constexpr int kMaxLimitRules = 64;
inline constexpr size_t kMaxUuidText = 48;

struct LimitRule {
  enum class Key : uint8_t { kEveryDevice, kOrdinal, kUuid };
  Key key = Key::kEveryDevice;
  uint32_t ordinal = 0;
  char uuid[kMaxUuidText] =
      {};  // "GPU-..." or "MIG-...", lower case after the prefix; may be cut short as in CUDA_VISIBLE_DEVICES
  LimitValue value;
};

// Why a text is not a limit: the part that is wrong and what is wrong with it, both ready to print.
struct LimitError {
  char part[64] = {};
  const char* reason = nullptr;
};

class LimitRules {
 public:
  // Empty or blank text: no rules, watch only. Returns false, with *error filled, and leaves no rules on bad text.
  [[nodiscard]] bool parse(std::string_view text, LimitError* error);

  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] const LimitRule& rule(int index) const { return rules_[index]; }

  // Bytes for one device, kNoLimit where no rule names it. A UUID beats an ordinal, which beats `*`.
  // `uuid_text` is "GPU-xxxxxxxx-...".
  [[nodiscard]] uint64_t for_device(uint32_t ordinal, std::string_view uuid_text, uint64_t physical_bytes) const;

 private:
  const char* add(std::string_view entry, bool only_entry);

  LimitRule rules_[kMaxLimitRules];
  int count_ = 0;
};

// What to tell someone whose value could not be read.
inline constexpr const char* kLimitHelp =
    "write for example 4G, 1.5GiB, 50%, or one a device: 0=4G,1=8G,GPU-<uuid>=4G,*=2G";

}  // namespace gpucap::core
