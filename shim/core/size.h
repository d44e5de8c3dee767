// Sizes as people write them. Pure: no allocation, no locale, no environment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpucap::core {

inline constexpr uint64_t kKiB = uint64_t{1} << 10;
inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kGiB = uint64_t{1} << 30;
inline constexpr uint64_t kNoLimit = UINT64_MAX;

constexpr uint64_t round_up(uint64_t bytes, uint64_t granule) {
  const uint64_t rest = bytes % granule;
  if (rest == 0) return bytes;
  return bytes > UINT64_MAX - (granule - rest) ? UINT64_MAX - granule + 1 : bytes + (granule - rest);
}

// An amount of device memory: so many bytes, or a share of the physical device.
struct LimitValue {
  bool relative = false;
  uint64_t bytes = 0;              // when not relative
  uint64_t parts_per_billion = 0;  // when relative, at most 10^9

  [[nodiscard]] uint64_t resolve(uint64_t physical_bytes) const;
};

enum class SizeError {
  kNone,
  kEmpty,
  kNotASize,  // no number, a sign, or an unknown unit
  kTooManyDigits,
  kTooLarge,     // above 2^63 bytes
  kTooSmall,     // above zero but below 1 MiB: a forgotten unit
  kOverHundred,  // more than 100 %
};
const char* to_text(SizeError error);

// Grammar: blanks? digits [. digits] blanks? [unit] blanks?, any letter case. Units: K M G T and KiB/Ki... = powers of
// 1024; KB MB GB TB = powers of 1000; B or none = bytes; % = share of the physical device. Fractions round down to a
// byte.
SizeError parse_limit_value(std::string_view text, LimitValue* value);

// "3.21 GiB", "512 B"; negative figures keep their sign. Returns `buffer`, always terminated.
const char* format_bytes(int64_t bytes, char* buffer, size_t buffer_bytes);

struct BytesText {
  explicit BytesText(int64_t bytes) { format_bytes(bytes, text, sizeof(text)); }
  char text[32];
};

}  // namespace gpucap::core
