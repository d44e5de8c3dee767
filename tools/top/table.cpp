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
constexpr uint64_t kSecondNs = 1000000000;

uint64_t seconds_between(uint64_t from_ns, uint64_t to_ns) {
  return to_ns < from_ns ? 0 : (to_ns - from_ns) / kSecondNs;
}

struct ColumnKind {
  const char* title;
  int drop_order;  // 1 goes first
  bool to_the_right;
  std::function<std::string(const TableRow&)> text;
  bool only_if_any = false;  // left out where every row says "-"
};

// What a dead process holds is nothing, whatever its last figures were.
std::function<std::string(const TableRow&)> of_the_living(std::function<std::string(const TableRow&)> text) {
  return [text = std::move(text)](const TableRow& row) { return row.alive ? text(row) : "-"; };
}

std::string waiting_text(const TableRow& row) {
  return row.waiting_count == 0 ? "-" : human_bytes(row.waiting_bytes) + " " + human_duration(row.waiting_seconds);
}

const std::vector<ColumnKind>& column_kinds() {
  static const std::vector<ColumnKind> kKinds = {
      {"PID", kNeverDropped, true, [](const TableRow& row) { return std::to_string(row.pid); }},
      {"USER", 4, false, [](const TableRow& row) { return fit(row.user, kWidestUser); }},
      {"GROUP", 5, false, [](const TableRow& row) { return row.group.empty() ? "-" : fit(row.group, kWidestUser); },
       true},
      {"GPU", 9, true, [](const TableRow& row) { return std::to_string(row.gpu); }},
      {"USED", kNeverDropped, true, of_the_living([](const TableRow& row) { return human_bytes(row.used_bytes); })},
      {"CAP", 10, true, [](const TableRow& row) { return row.limit_bytes ? human_bytes(*row.limit_bytes) : "-"; }},
      {"%", 7, true, of_the_living([](const TableRow& row) {
         return row.limit_bytes ? percent_of(row.used_bytes, *row.limit_bytes) : "-";
       })},
      {"PEAK", 6, true, [](const TableRow& row) { return human_bytes(row.peak_bytes); }},
      {"DRIVER", 3, true, of_the_living([](const TableRow& row) { return human_bytes(row.driver_bytes); })},
      {"LIVE", 2, true, of_the_living([](const TableRow& row) { return std::to_string(row.live_count); })},
      {"REFUSED", 8, true, [](const TableRow& row) { return std::to_string(row.refused_count); }},
      {"WAITING", 11, true, of_the_living(waiting_text), true},
      {"AGE", 1, true, [](const TableRow& row) { return human_duration(row.age_seconds); }},
      {"ENDED", 12, false, [](const TableRow& row) { return row.alive ? "-" : row.ended; }, true},
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
    const auto says_nothing = [](const std::string& cell) { return cell == "-"; };
    if (kind.only_if_any && std::all_of(column.cells.begin(), column.cells.end(), says_nothing)) continue;
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

uint64_t age_seconds(const Segment& segment, const Scan& scan) {
  const wire::SegmentSnapshot& snapshot = segment.snapshot;
  if (segment.alive() && scan.monotonic_ns >= snapshot.created_monotonic_ns) {
    // The better clock, where both are of the same boot.
    return (scan.monotonic_ns - snapshot.created_monotonic_ns) / kSecondNs;
  }
  const uint64_t until_ns = segment.alive() ? scan.realtime_ns : segment.dead_since_ns;
  return until_ns < snapshot.created_realtime_ns ? 0 : (until_ns - snapshot.created_realtime_ns) / kSecondNs;
}

std::vector<TableRow> table_rows(const Scan& scan) {
  struct Entry {
    TableRow row;
    uint64_t dead_since_ns;
  };
  std::vector<Entry> entries;
  for (const Segment& segment : scan.segments) {
    for (const wire::DeviceSnapshot& device : segment.snapshot.devices) {
      const gpucap_device& gauges = device.gauges;
      if (gauges.active == 0) continue;
      TableRow row;
      row.alive = segment.alive();
      row.pid = segment.pid();
      row.user = segment.user;
      row.gpu = gauges.ordinal;
      row.used_bytes = device.used_bytes();
      if (gauges.limit_bytes != GPUCAP_WIRE_NO_LIMIT) row.limit_bytes = gauges.limit_bytes;
      row.peak_bytes = gauges.peak_bytes;
      row.driver_bytes = gauges.driver_bytes;
      row.live_count = device.live_count;
      row.refused_count = gauges.refused_count;
      row.age_seconds = age_seconds(segment, scan);
      row.group = segment.snapshot.group;
      row.waiting_count = gauges.waiting_count;
      row.waiting_bytes = gauges.waiting_bytes;
      row.waiting_seconds = seconds_between(gauges.waiting_monotonic_ns, scan.monotonic_ns);
      if (!row.alive) {
        row.ended = std::string(wire::to_text(segment.liveness.liveness)) + " " +
                    human_duration(seconds_between(segment.dead_since_ns, scan.realtime_ns)) + " ago";
      }
      row.command = command_line(segment.snapshot.command);
      entries.push_back({std::move(row), segment.dead_since_ns});
    }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    if (a.row.alive != b.row.alive) return a.row.alive;
    if (!a.row.alive && a.dead_since_ns != b.dead_since_ns) return a.dead_since_ns > b.dead_since_ns;
    if (a.row.alive && a.row.used_bytes != b.row.used_bytes) return a.row.used_bytes > b.row.used_bytes;
    return a.row.pid < b.row.pid;
  });
  std::vector<TableRow> rows;
  for (Entry& entry : entries) rows.push_back(std::move(entry.row));
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
