// Makes text out of bytes that a stranger wrote: see clean_text() in segment_reader.h. Pure.
#include <cstdint>

#include "wire/segment_reader.h"

namespace gpucap::wire {
namespace {

// Length of the UTF-8 sequence at the front with its code point, or 0 if there is none: overlong forms, surrogates and
// values past U+10FFFF are none.
size_t decode(std::string_view bytes, uint32_t* code_point) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t lead = byte(0);
  const size_t length = lead < 0x80 ? 1 : lead >> 5 == 0x06 ? 2 : lead >> 4 == 0x0e ? 3 : lead >> 3 == 0x1e ? 4 : 0;
  if (length == 0 || length > bytes.size()) return 0;
  constexpr uint32_t kLeadMask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  uint32_t value = lead & kLeadMask[length];
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    value = value << 6 | (byte(i) & 0x3fu);
  }
  if (value < kSmallest[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return 0;
  *code_point = value;
  return length;
}

bool shows_itself(uint32_t c) {
  if (c < 0x20 || (c >= 0x7f && c < 0xa0)) return false;     // control characters, C1 too
  if (c == 0xad || c == 0x61c || c == 0xfeff) return false;  // invisible, or changes direction
  if (c >= 0x200b && c <= 0x200f) return false;              // zero width, direction marks
  if (c >= 0x2028 && c <= 0x202e) return false;              // line ends, direction overrides
  if (c >= 0x2060 && c <= 0x206f) return false;              // invisible operators, isolates
  return c < 0xe0000 || c > 0xe0fff;                         // tags
}

}  // namespace

std::string clean_text(std::string_view bytes) {
  bytes = bytes.substr(0, bytes.find('\0'));
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    uint32_t code_point = 0;
    const size_t length = decode(bytes, &code_point);
    if (length != 0 && shows_itself(code_point)) {
      text.append(bytes.substr(0, length));
    } else {
      text.push_back('?');
    }
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return text;
}

}  // namespace gpucap::wire
