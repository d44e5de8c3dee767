// The table: see table.h.
#include "tools/top/table.h"

#include <algorithm>
#include <functional>

#include "tools/common/format.h"
#include "tools/common/text_width.h"

namespace gpucap::tools {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kWidestUser = 12;
constexpr size_t kNarrowestCommand = 10;
constexpr int kNeverDropped = 0;

struct ColumnKind {
  const char* title;
  int drop_order;  // 1 goes first
  bool to_the_right;
  std::function<std::string(const TableRow&)> text;
};

const std::vector<ColumnKind>& column_kinds() {
  static const std::vector<ColumnKind> kKinds = {
      {"PID", kNeverDropped, true, [](const TableRow& row) { return std::to_string(row.pid); }},
      {"USER", 4, false, [](const TableRow& row) { return fit(row.user, kWidestUser); }},
      {"GPU", 8, true, [](const TableRow& row) { return std::to_string(row.gpu); }},
      {"USED", kNeverDropped, true, [](const TableRow& row) { return human_bytes(row.used_bytes); }},
      {"CAP", 9, true, [](const TableRow& row) { return row.limit_bytes ? human_bytes(*row.limit_bytes) : "-"; }},
      {"%", 6, true,
       [](const TableRow& row) { return row.limit_bytes ? percent_of(row.used_bytes, *row.limit_bytes) : "-"; }},
      {"PEAK", 5, true, [](const TableRow& row) { return human_bytes(row.peak_bytes); }},
      {"DRIVER", 3, true, [](const TableRow& row) { return human_bytes(row.driver_bytes); }},
      {"LIVE", 2, true, [](const TableRow& row) { return std::to_string(row.live_count); }},
      {"REFUSED", 7, true, [](const TableRow& row) { return std::to_string(row.refused_count); }},
      {"AGE", 1, true, [](const TableRow& row) { return human_duration(row.age_seconds); }},
  };
  return kKinds;
}

struct Column {
  const ColumnKind* kind;
  size_t width;
  std::vector<std::string> cells;
};

std::vector<Column> measured_columns(const std::vector<TableRow>& rows) {
  std::vector<Column> columns;
  for (const ColumnKind& kind : column_kinds()) {
    Column column{&kind, display_width(kind.title), {}};
    for (const TableRow& row : rows) {
      column.cells.push_back(kind.text(row));
      column.width = std::max(column.width, display_width(column.cells.back()));
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

size_t total_width(const std::vector<Column>& columns) {
  size_t total = 0;
  for (const Column& column : columns) total += column.width + kGap;
  return total;
}

void drop_columns_to_fit(std::vector<Column>* columns, size_t width) {
  while (total_width(*columns) + kNarrowestCommand > width) {
    auto first = columns->end();
    for (auto column = columns->begin(); column != columns->end(); ++column) {
      if (column->kind->drop_order == kNeverDropped) continue;
      if (first == columns->end() || column->kind->drop_order < first->kind->drop_order) first = column;
    }
    if (first == columns->end()) return;
    columns->erase(first);
  }
}

}  // namespace

uint64_t age_seconds(const wire::SegmentSnapshot& snapshot, const Scan& scan) {
  constexpr uint64_t kSecondNs = 1000000000;
  // The monotonic clock is the better one, where both are of the same boot.
  if (scan.monotonic_ns >= snapshot.created_monotonic_ns) {
    return (scan.monotonic_ns - snapshot.created_monotonic_ns) / kSecondNs;
  }
  if (scan.realtime_ns < snapshot.created_realtime_ns) return 0;
  return (scan.realtime_ns - snapshot.created_realtime_ns) / kSecondNs;
}

std::vector<TableRow> table_rows(const Scan& scan) {
  std::vector<TableRow> rows;
  for (const Segment& segment : scan.segments) {
    if (segment.liveness.liveness != wire::Liveness::kAlive) continue;
    for (const wire::DeviceSnapshot& device : segment.snapshot.devices) {
      if (device.gauges.active == 0) continue;
      TableRow row;
      row.pid = segment.pid();
      row.user = segment.user;
      row.gpu = device.gauges.ordinal;
      row.used_bytes = device.used_bytes();
      if (device.gauges.limit_bytes != GPUCAP_WIRE_NO_LIMIT) row.limit_bytes = device.gauges.limit_bytes;
      row.peak_bytes = device.gauges.peak_bytes;
      row.driver_bytes = device.gauges.driver_bytes;
      row.live_count = device.gauges.live_count;
      row.refused_count = device.gauges.refused_count;
      row.age_seconds = age_seconds(segment.snapshot, scan);
      row.command = command_line(segment.snapshot.command);
      rows.push_back(std::move(row));
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const TableRow& a, const TableRow& b) {
    return a.used_bytes != b.used_bytes ? a.used_bytes > b.used_bytes : a.pid < b.pid;
  });
  return rows;
}

std::vector<std::string> layout_table(const std::vector<TableRow>& rows, size_t width, size_t height) {
  std::vector<Column> columns = measured_columns(rows);
  if (width != 0) drop_columns_to_fit(&columns, width);
  const auto line = [&](const auto& cell_of, const std::string& command) {
    std::string text;
    for (const Column& column : columns) {
      const std::string cell = cell_of(column);
      text += column.kind->to_the_right ? padded_left(cell, column.width) : padded_right(cell, column.width);
      text.append(kGap, ' ');
    }
    text += command;
    return width == 0 ? text : fit(text, width);
  };
  std::vector<std::string> lines = {line([](const Column& column) { return column.kind->title; }, "COMMAND")};
  size_t shown = rows.size();
  const bool all_fit = height == 0 || rows.size() + 1 <= height;
  if (!all_fit) shown = height < 2 ? 0 : height - 2;
  for (size_t i = 0; i < shown; ++i) {
    lines.push_back(line([i](const Column& column) { return column.cells[i]; }, rows[i].command));
  }
  if (!all_fit && height >= 2) {
    const std::string more = "... and " + std::to_string(rows.size() - shown) + " more";
    lines.push_back(width == 0 ? more : fit(more, width));
  }
  return lines;
}

}  // namespace gpucap::tools
