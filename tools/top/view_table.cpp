// The process table of the screen: see view_parts.h. Columns have widths that hardly change from look to look, so that
// little is sent over a slow line and nothing jumps.
#include <algorithm>
#include <functional>

#include "tools/common/format.h"
#include "tools/common/text_width.h"
#include "tools/top/view_parts.h"

namespace gpucap::tools {
namespace {

constexpr size_t kWidestUser = 12;
constexpr size_t kNarrowestCommand = 12;
constexpr size_t kGap = 2;
constexpr int kNeverDropped = 0;

size_t digits(uint64_t value) {
  size_t count = 1;
  for (; value >= 10; value /= 10) ++count;
  return count;
}

struct ColumnKind {
  SortBy sort;
  int drop_order;  // 1 goes first
  bool to_the_right;
  size_t least_width;
  std::function<std::string(const ProcessRow&)> text;
  // How wide that text is, without making it; null: least_width is enough for all.
  std::function<size_t(const ProcessRow&)> width;
};

const std::vector<ColumnKind>& column_kinds() {
  static const std::vector<ColumnKind> kKinds = {
      {SortBy::kPid, kNeverDropped, true, 7, [](const ProcessRow& row) { return std::to_string(row.pid); },
       [](const ProcessRow& row) { return digits(static_cast<uint64_t>(row.pid)); }},
      {SortBy::kUser, 4, false, 4, [](const ProcessRow& row) { return fit(row.user, kWidestUser); },
       [](const ProcessRow& row) { return std::min(kWidestUser, display_width(row.user)); }},
      {SortBy::kCard, 8, true, 3, [](const ProcessRow& row) { return std::to_string(row.card); }, nullptr},
      {SortBy::kUsed, kNeverDropped, true, 8,
       [](const ProcessRow& row) { return row.alive ? human_bytes(row.used_bytes) : "-"; }, nullptr},
      {SortBy::kLimit, kNeverDropped, true, 8,
       [](const ProcessRow& row) { return row.limit_bytes ? human_bytes(*row.limit_bytes) : "-"; }, nullptr},
      {SortBy::kPercent, 9, true, 4,
       [](const ProcessRow& row) {
         return row.alive && row.limit_bytes ? percent_of(row.used_bytes, *row.limit_bytes) : "-";
       },
       [](const ProcessRow& row) {
         return size_t{row.used_bytes / 100 > row.limit_bytes.value_or(UINT64_MAX) ? 5u : 4u};
       }},
      {SortBy::kPeak, 6, true, 8, [](const ProcessRow& row) { return human_bytes(row.peak_bytes); }, nullptr},
      {SortBy::kDriver, 3, true, 8,
       [](const ProcessRow& row) { return row.alive ? human_bytes(row.driver_bytes) : "-"; },
       [](const ProcessRow& row) { return size_t{row.driver_bytes < 0 ? 9u : 8u}; }},
      {SortBy::kLive, 2, true, 5,
       [](const ProcessRow& row) { return row.alive ? std::to_string(row.live_count) : "-"; },
       [](const ProcessRow& row) { return digits(static_cast<uint64_t>(std::max<int64_t>(row.live_count, 0))) + 1; }},
      {SortBy::kRefused, 7, true, 7, [](const ProcessRow& row) { return std::to_string(row.refused_count); },
       [](const ProcessRow& row) { return digits(row.refused_count); }},
      {SortBy::kAge, 1, true, 7, [](const ProcessRow& row) { return human_duration(row.age_seconds); }, nullptr},
  };
  return kKinds;
}

struct Column {
  const ColumnKind* kind;
  size_t width;
};

// Widths come from all rows, not only those in sight: scrolling moves nothing sideways.
std::vector<Column> fitting_columns(const ScreenModel& model, size_t width) {
  std::vector<Column> columns;
  size_t total = kNarrowestCommand;
  for (const ColumnKind& kind : column_kinds()) {
    Column column{&kind, std::max(kind.least_width, display_width(sort_name(kind.sort)))};
    if (kind.width) {
      for (const ProcessRow& row : model.rows) column.width = std::max(column.width, kind.width(row));
    }
    total += column.width + kGap;
    columns.push_back(column);
  }
  while (total > width) {
    auto first = columns.end();
    for (auto column = columns.begin(); column != columns.end(); ++column) {
      if (column->kind->drop_order == kNeverDropped) continue;
      if (first == columns.end() || column->kind->drop_order < first->kind->drop_order) first = column;
    }
    if (first == columns.end()) break;
    total -= first->width + kGap;
    columns.erase(first);
  }
  return columns;
}

StyledLine header_line(const std::vector<Column>& columns, const ViewState& state, size_t width) {
  const Glyphs& glyph = glyphs(state.ascii);
  const char* mark = state.inverted ? (glyph.ascii ? "^" : "\u25b4") : (glyph.ascii ? "v" : "\u25be");
  StyledLine line;
  const auto title = [&](SortBy sort, const std::string& text) {
    const bool chosen = sort == state.sort;
    add(&line, text + (chosen ? mark : " "), chosen ? Style::kSelected : Style::kHeader);
    add(&line, " ", Style::kHeader);
  };
  for (const Column& column : columns) {
    const std::string name = sort_name(column.kind->sort);
    title(column.kind->sort,
          column.kind->to_the_right ? padded_left(name, column.width) : padded_right(name, column.width));
  }
  title(SortBy::kCommand, sort_name(SortBy::kCommand));
  add_spaces_up_to(&line, width, Style::kHeader);
  return cut(line, width);
}

Style figure_style(const ProcessRow& row, SortBy sort) {
  const bool full = row.limit_bytes && row.used_bytes >= *row.limit_bytes / 10 * 9;
  if ((sort == SortBy::kUsed || sort == SortBy::kPercent) && full) return Style::kWarning;
  if (sort == SortBy::kRefused && row.refused_count != 0) return Style::kTrouble;
  return Style::kPlain;
}

std::string command_text(const ProcessRow& row) {
  if (!row.alive) {
    std::string ended = "[" + row.how_ended;
    if (row.ended_seconds_ago) ended += " " + human_duration(*row.ended_seconds_ago) + " ago";
    return ended + "] " + row.command;
  }
  if (row.waiting_count != 0) return "[" + std::to_string(row.waiting_count) + " waiting] " + row.command;
  return row.command;
}

StyledLine process_line(const std::vector<Column>& columns, const ArrangedRow& arranged, const ProcessRow& row,
                        const ViewState& state, bool selected, size_t width) {
  const Glyphs& glyph = glyphs(state.ascii);
  const auto style = [&](Style usual) { return selected ? Style::kSelected : row.alive ? usual : Style::kDim; };
  StyledLine line;
  for (const Column& column : columns) {
    const std::string cell = column.kind->text(row);
    add(&line, column.kind->to_the_right ? padded_left(cell, column.width) : padded_right(cell, column.width),
        style(figure_style(row, column.kind->sort)));
    add(&line, std::string(kGap, ' '), style(Style::kPlain));
  }
  if (arranged.depth > 0) {
    add(&line, std::string(3 * std::min<size_t>(arranged.depth - 1, 8), ' '), style(Style::kDim));
    add(&line, arranged.last_of_siblings ? glyph.last_branch : glyph.branch, style(Style::kDim));
  }
  const std::string command = command_text(row);
  const size_t at = command.find(row.command);
  add(&line, command.substr(0, at), style(row.alive ? Style::kWarning : Style::kDim));
  add(&line, row.command, style(Style::kPlain));
  if (selected) add_spaces_up_to(&line, width, Style::kSelected);
  return cut(line, width);
}

StyledLine heading_line(const ArrangedRow& row, size_t width) {
  StyledLine line;
  add(&line, row.heading + "  ", Style::kStrong);
  add(&line, human_bytes(row.heading_used_bytes), Style::kStrong);
  if (row.heading_limit_bytes) {
    const bool full = row.heading_used_bytes >= *row.heading_limit_bytes / 10 * 9;
    add(&line, " of " + human_bytes(*row.heading_limit_bytes), full ? Style::kWarning : Style::kStrong);
  }
  return cut(line, width);
}

}  // namespace

std::vector<StyledLine> table_lines(const ScreenModel& model, const ViewState& state,
                                    const std::vector<ArrangedRow>& rows, size_t columns, size_t lines) {
  std::vector<StyledLine> result;
  if (lines == 0) return result;
  const std::vector<Column> fitting = fitting_columns(model, columns);
  result.push_back(header_line(fitting, state, columns));
  const std::optional<size_t> selected = selected_position(rows, model, state.selected_key);
  for (size_t i = state.first_row; i < rows.size() && result.size() < lines; ++i) {
    if (rows[i].index) {
      result.push_back(
          process_line(fitting, rows[i], model.rows[*rows[i].index], state, selected && *selected == i, columns));
    } else {
      result.push_back(heading_line(rows[i], columns));
    }
  }
  if (rows.empty()) {
    std::string text = state.filter.empty() ? "Only ended processes: x shows them" : "No process matches the filter";
    if (model.rows.empty()) text = model.advice;
    while (!text.empty() && result.size() < lines) {
      result.emplace_back();
      add(&result.back(), take_broken_line(&text, columns), Style::kDim);
    }
  }
  return result;
}

}  // namespace gpucap::tools
