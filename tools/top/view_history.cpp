// The graph of one row's use: see view_parts.h. One column a look, the newest at the right.
#include <algorithm>
#include <cstdio>

#include "tools/common/format.h"
#include "tools/common/text_width.h"
#include "tools/top/view_parts.h"

namespace gpucap::tools {
namespace {

constexpr size_t kAxisColumns = 9;

// How many steps of a column of `rows` characters a value fills; anything above zero shows.
size_t steps_of(uint64_t value, uint64_t top, size_t most_steps) {
  if (value == 0 || top == 0) return 0;
  const double share = static_cast<double>(value) / static_cast<double>(top);
  const auto steps = static_cast<size_t>(share * static_cast<double>(most_steps));
  return std::clamp<size_t>(steps, 1, most_steps);
}

}  // namespace

StyledLine titled_rule(const std::string& title, size_t columns, bool ascii) {
  const char* rule = glyphs(ascii).rule;
  StyledLine line;
  add(&line, std::string(rule) + rule + " ", Style::kDim);
  add(&line, title, Style::kStrong);
  add(&line, " ");
  const size_t width = line_width(line);
  if (width < columns) add(&line, repeated(rule, columns - width), Style::kDim);
  return cut(line, columns);
}

std::vector<StyledLine> history_lines(const ScreenModel& model, const ProcessRow& row, size_t columns, size_t lines,
                                      bool ascii) {
  if (lines == 0) return {};
  const Glyphs& glyph = glyphs(ascii);
  const size_t width = columns > kAxisColumns + 1 ? columns - kAxisColumns - 1 : 0;
  const size_t shown = std::min(width, model.history.size());
  const auto first = model.history.end() - static_cast<std::ptrdiff_t>(shown);
  uint64_t top = row.limit_bytes.value_or(0);
  for (auto value = first; value != model.history.end(); ++value) top = std::max(top, *value);
  if (!row.limit_bytes) top = std::max(top, row.peak_bytes);

  const auto seconds = static_cast<uint64_t>(static_cast<double>(shown) * model.seconds_per_look + 0.5);
  std::string title = std::to_string(row.pid) + " on GPU " + std::to_string(row.card) + ": use of the last " +
                      human_duration(seconds) + ", " + (row.limit_bytes ? "up to its cap" : "no cap");
  std::vector<StyledLine> result = {titled_rule(title, columns, ascii)};
  const size_t rows = lines - 1;
  const size_t full = glyph.steps.size() - 1;
  for (size_t i = 0; i < rows; ++i) {
    const size_t below = (rows - 1 - i) * full;  // steps that the lower rows of the column show
    StyledLine line;
    const std::string label = i == 0 ? human_bytes(top) : i + 1 == rows ? "0 B" : "";
    add(&line, padded_left(label, kAxisColumns) + " ", Style::kDim);
    add(&line, std::string(width - shown, ' '));
    for (auto value = first; value != model.history.end(); ++value) {
      const size_t steps = steps_of(*value, top, rows * full);
      const bool full_up = row.limit_bytes && *value >= *row.limit_bytes / 10 * 9;
      add(&line, glyph.steps[std::min(full, steps > below ? steps - below : 0)],
          full_up ? Style::kWarning : Style::kData);
    }
    result.push_back(cut(line, columns));
  }
  return result;
}

}  // namespace gpucap::tools
