// Widths on a terminal: see text_width.h. Own small tables, since wcwidth() depends on the locale.
#include "tools/common/text_width.h"

#include <algorithm>
#include <cstdint>

namespace gpucap::tools {
namespace {

uint32_t take(std::string_view* text) {
  const auto lead = static_cast<uint8_t>(text->front());
  size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (length > text->size()) length = text->size();
  uint32_t value = length == 1 ? lead : lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) value = value << 6 | (static_cast<uint8_t>((*text)[i]) & 0x3fu);
  text->remove_prefix(length);
  return value;
}

size_t width_of(uint32_t c) {
  if (c < 0x300) return 1;
  const auto within = [c](uint32_t first, uint32_t last) { return c >= first && c <= last; };
  // Combining marks and variation selectors.
  if (within(0x300, 0x36f) || within(0x1ab0, 0x1aff) || within(0x20d0, 0x20ff) || within(0xfe00, 0xfe0f)) return 0;
  // East Asian wide and full-width forms, and pictographs.
  const bool wide = within(0x1100, 0x115f) || within(0x2e80, 0x303e) || within(0x3041, 0xa4cf) ||
                    within(0xac00, 0xd7a3) || within(0xf900, 0xfaff) || within(0xfe30, 0xfe6f) ||
                    within(0xff00, 0xff60) || within(0xffe0, 0xffe6) || within(0x1f300, 0x1faff) ||
                    within(0x20000, 0x3fffd);
  return wide ? 2 : 1;
}

}  // namespace

size_t display_width(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) width += width_of(take(&text));
  return width;
}

std::string fit(std::string_view text, size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  std::string_view rest = text;
  size_t width = 0;
  size_t kept = 0;
  while (!rest.empty()) {
    width += width_of(take(&rest));
    if (width > columns - 1) break;
    kept = text.size() - rest.size();
  }
  return std::string(text.substr(0, kept)) + "~";
}

std::string padded_left(std::string_view text, size_t columns) {
  const size_t width = display_width(text);
  return std::string(columns > width ? columns - width : 0, ' ').append(text);
}

std::string padded_right(std::string_view text, size_t columns) {
  const size_t width = display_width(text);
  return std::string(text).append(columns > width ? columns - width : 0, ' ');
}

std::vector<std::string> aligned_table(const std::vector<std::vector<std::string>>& cells) {
  std::vector<size_t> widths;
  for (const auto& row : cells) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::vector<std::string> lines;
  for (const auto& row : cells) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += i == 0 ? padded_right(row[i], widths[i]) : "  " + padded_left(row[i], widths[i]);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace gpucap::tools
