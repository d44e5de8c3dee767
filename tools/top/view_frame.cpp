// Lines of styled text: see view_frame.h.
#include "tools/top/view_frame.h"

#include <algorithm>

#include "tools/common/text_width.h"

namespace gpucap::tools {

const Glyphs& glyphs(bool ascii) {
  static const Glyphs kBlocks = {
      false,           "\u2588", "\u2593",
      "\u2591",        "\u2500", "\u251c\u2500 ",
      "\u2514\u2500 ", "\u2191", {" ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"},
  };
  static const Glyphs kAscii = {true, "#", "d", "o", "-", "|- ", "`- ", "^", {" ", ".", ":", "#"}};
  return ascii ? kAscii : kBlocks;
}

size_t line_width(const StyledLine& line) {
  size_t width = 0;
  for (const Span& span : line) width += display_width(span.text);
  return width;
}

void add(StyledLine* line, std::string_view text, Style style) {
  if (text.empty()) return;
  if (!line->empty() && line->back().style == style) {
    line->back().text += text;
  } else {
    line->push_back({std::string(text), style});
  }
}

void add_spaces_up_to(StyledLine* line, size_t column, Style style) {
  const size_t width = line_width(*line);
  if (width < column) add(line, std::string(column - width, ' '), style);
}

std::string repeated(std::string_view text, size_t count) {
  std::string result;
  for (; count > 0; --count) result += text;
  return result;
}

StyledLine cut(const StyledLine& line, size_t columns) {
  if (line_width(line) <= columns) return line;
  StyledLine result;
  size_t left = columns;
  for (const Span& span : line) {
    const size_t width = display_width(span.text);
    // A span that just fits still has one after it: it gives up its last column to the mark.
    if (width < left) {
      add(&result, span.text, span.style);
      left -= width;
      continue;
    }
    add(&result, fit(width == left ? span.text + "~" : span.text, left), span.style);
    break;
  }
  return result;
}

std::string as_ascii(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    size_t length = 1;
    while (i + length < text.size() && (static_cast<unsigned char>(text[i + length]) & 0xc0) == 0x80) ++length;
    if (length == 1 && static_cast<unsigned char>(text[i]) < 0x80) {
      result += text[i];
    } else {
      result.append(display_width(text.substr(i, length)), '?');
    }
    i += length;
  }
  return result;
}

std::string take_broken_line(std::string* text, size_t columns) {
  std::string part = *text;
  if (columns != 0 && display_width(part) > columns) {
    part = fit(part, columns + 1);  // and its mark, which goes
    part.pop_back();
    const size_t blank = part.rfind(' ');
    if (blank != std::string::npos && blank > part.size() / 2) part.resize(blank);
  }
  // A character that is wider than the line must not stop it from ever ending.
  if (part.empty()) part = *text;
  text->erase(0, part.size());
  text->erase(0, std::min(text->find_first_not_of(' '), text->size()));
  return fit(part, columns == 0 ? part.size() : columns);
}

std::string plain_text(const StyledLine& line) {
  std::string text;
  for (const Span& span : line) text += span.text;
  return text;
}

std::string plain_text(const Frame& frame) {
  std::string text;
  for (const StyledLine& line : frame.lines) {
    std::string one = plain_text(line);
    one.erase(one.find_last_not_of(' ') + 1);
    text += one + "\n";
  }
  return text;
}

}  // namespace gpucap::tools
