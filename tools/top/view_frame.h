// What a screen is made of: lines of styled text. Every view_* file makes such lines from a model and nothing else; the
// terminal front end draws them, and the tests read them. Pure: no terminal, no clock, no files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpucap::tools {

// What a piece of text is, not how it looks: the front end chooses colours, or does without.
enum class Style : uint8_t {
  kPlain,
  kDim,
  kStrong,
  kHeader,    // the table's column titles
  kSelected,  // the row that the keys act on
  kData,
  kDriver,
  kOthers,
  kWarning,
  kTrouble,
  kKey,  // names a key in the last line
  kCount,
};

struct Span {
  std::string text;
  Style style = Style::kPlain;
};
using StyledLine = std::vector<Span>;

struct Frame {
  std::vector<StyledLine> lines;
  int cursor_column = -1;  // of the last line while something is typed, else -1
};

struct ScreenSize {
  size_t columns = 80;
  size_t lines = 24;
};

// The characters that drawings are made of: block elements, or ASCII alone.
struct Glyphs {
  bool ascii = false;
  const char* data;
  const char* driver;
  const char* others;
  const char* rule;
  const char* branch;
  const char* last_branch;
  const char* over;                // over the top of a graph
  std::vector<const char*> steps;  // of a graph's column, from nothing to full
};
const Glyphs& glyphs(bool ascii);

size_t line_width(const StyledLine& line);
void add(StyledLine* line, std::string_view text, Style style = Style::kPlain);
void add_spaces_up_to(StyledLine* line, size_t column, Style style = Style::kPlain);
std::string repeated(std::string_view text, size_t count);

// Cut to `columns`; nothing is added to a shorter one.
StyledLine cut(const StyledLine& line, size_t columns);
// Every character beyond ASCII becomes as many '?' as it is wide.
std::string as_ascii(std::string_view text);

// Takes the first line off a longer text, broken at a blank where there is one; 0 columns: all of it.
std::string take_broken_line(std::string* text, size_t columns);

std::string plain_text(const StyledLine& line);
// All lines, without styles and without blanks at the ends; what the tests compare.
std::string plain_text(const Frame& frame);

}  // namespace gpucap::tools
