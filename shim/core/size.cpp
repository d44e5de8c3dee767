#include "shim/core/size.h"

#include <cstdio>

#include "shim/core/text.h"

namespace gpucap::core {
namespace {

constexpr int kMaxDigits = 20;   // whole part: enough for 2^64
constexpr int kMaxFraction = 9;  // a billionth of a tebibyte is a kibibyte: finer is a slip
constexpr uint64_t kBillion = 1000000000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// 0 means unknown; a percent sign is handled by the caller.
uint64_t unit_bytes(std::string_view unit) {
  if (unit.empty()) return 1;
  const char first = lower(unit[0]);
  if (first == 'b') return unit.size() == 1 ? 1 : 0;
  int power = 0;
  for (const char letter : {'k', 'm', 'g', 't'}) {
    ++power;
    if (first == letter) break;
    if (letter == 't') return 0;
  }
  const std::string_view rest = unit.substr(1);
  const bool binary =
      rest.empty() || (rest.size() <= 2 && lower(rest[0]) == 'i' && (rest.size() == 1 || lower(rest[1]) == 'b'));
  const bool decimal = rest.size() == 1 && lower(rest[0]) == 'b';
  if (!binary && !decimal) return 0;
  uint64_t bytes = 1;
  for (int i = 0; i < power; ++i) bytes *= decimal ? 1000 : 1024;
  return bytes;
}

}  // namespace

uint64_t LimitValue::resolve(uint64_t physical_bytes) const {
  if (!relative) return bytes;
  return static_cast<uint64_t>(static_cast<unsigned __int128>(physical_bytes) * parts_per_billion / kBillion);
}

const char* to_text(SizeError error) {
  switch (error) {
    case SizeError::kNone:
      return "is fine";
    case SizeError::kEmpty:
      return "is empty where a size belongs";
    case SizeError::kNotASize:
      return "is not a size";
    case SizeError::kTooManyDigits:
      return "has too many digits";
    case SizeError::kTooLarge:
      return "is larger than any memory";
    case SizeError::kTooSmall:
      return "is less than 1 MiB: the unit seems to be missing";
    case SizeError::kOverHundred:
      return "is more than 100 %";
  }
  return "is not a size";
}

SizeError parse_limit_value(std::string_view text, LimitValue* value) {
  text = trim(text);
  if (text.empty()) return SizeError::kEmpty;
  unsigned __int128 number = 0;
  uint64_t scale = 1;
  int digits = 0, fraction_digits = 0;
  while (!text.empty() && is_digit(text.front())) {
    if (++digits > kMaxDigits) return SizeError::kTooManyDigits;
    number = number * 10 + static_cast<unsigned>(text.front() - '0');
    text.remove_prefix(1);
  }
  if (digits == 0) return SizeError::kNotASize;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    while (!text.empty() && is_digit(text.front())) {
      if (++fraction_digits > kMaxFraction) return SizeError::kTooManyDigits;
      number = number * 10 + static_cast<unsigned>(text.front() - '0');
      scale *= 10;
      text.remove_prefix(1);
    }
    if (fraction_digits == 0) return SizeError::kNotASize;
  }
  text = trim(text);
  LimitValue result;
  if (text == "%") {
    if (number > static_cast<unsigned __int128>(100) * scale) return SizeError::kOverHundred;
    result.relative = true;
    result.parts_per_billion = static_cast<uint64_t>(number * (kBillion / 100) / scale);
  } else {
    const uint64_t unit = unit_bytes(text);
    if (unit == 0) return SizeError::kNotASize;
    // 20 + 9 digits times 2^40 stay below 2^137: bound the number first.
    if (number / scale > (uint64_t{1} << 63)) return SizeError::kTooLarge;
    const unsigned __int128 bytes = number * unit / scale;
    if (bytes > (uint64_t{1} << 63)) return SizeError::kTooLarge;
    if (number != 0 && bytes < kMiB) return SizeError::kTooSmall;
    result.bytes = static_cast<uint64_t>(bytes);
  }
  *value = result;
  return SizeError::kNone;
}

const char* format_bytes(int64_t bytes, char* buffer, size_t buffer_bytes) {
  const uint64_t magnitude = bytes < 0 ? uint64_t{0} - static_cast<uint64_t>(bytes) : static_cast<uint64_t>(bytes);
  const char* sign = bytes < 0 ? "-" : "";
  if (magnitude < kKiB) {
    snprintf(buffer, buffer_bytes, "%s%llu B", sign, static_cast<unsigned long long>(magnitude));
    return buffer;
  }
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int unit = 0;
  while (unit < 5 && magnitude >> (10 * (unit + 2)) != 0) ++unit;
  // In whole numbers: printf would write a double with the decimal point of the program's locale.
  const int shift = 10 * (unit + 1);
  const unsigned __int128 scaled = static_cast<unsigned __int128>(magnitude) * 100;
  const auto hundredths = static_cast<uint64_t>((scaled + (uint64_t{1} << (shift - 1))) >> shift);
  snprintf(buffer, buffer_bytes, "%s%llu.%02llu %s", sign, static_cast<unsigned long long>(hundredths / 100),
           static_cast<unsigned long long>(hundredths % 100), kUnits[unit]);
  return buffer;
}

}  // namespace gpucap::core
