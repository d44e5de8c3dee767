// The page about one process on one card: see view_parts.h.
#include <algorithm>

#include "tools/common/format.h"
#include "tools/common/text_width.h"
#include "tools/top/view_parts.h"

namespace gpucap::tools {
namespace {

constexpr size_t kLabelColumns = 10;

class Sheet {
 public:
  Sheet(std::vector<StyledLine>* lines, size_t columns)
      : lines_(lines), room_(columns > 2 * kLabelColumns ? columns - kLabelColumns : 0) {}
  // As many lines as the text needs, broken at blanks.
  void line(std::string label, std::string text, Style style = Style::kPlain) {
    for (bool first = true; first || !text.empty(); first = false) {
      const std::string part = take_broken_line(&text, room_);
      StyledLine line;
      add(&line, padded_right(first ? label : "", kLabelColumns), Style::kStrong);
      add(&line, part, style);
      lines_->push_back(std::move(line));
    }
  }
  void heading(const std::string& text, const std::string& aside = "") {
    lines_->emplace_back();
    StyledLine line;
    add(&line, text, Style::kStrong);
    if (!aside.empty()) add(&line, "  " + aside, Style::kDim);
    lines_->push_back(std::move(line));
  }
  void put(StyledLine line) { lines_->push_back(std::move(line)); }

 private:
  std::vector<StyledLine>* lines_;
  size_t room_;  // 0: so narrow that lines are rather cut
};

std::string count_of(uint64_t count, const std::string& one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

void who(Sheet* page, const ProcessRow& row, const ProcessDetails& more) {
  page->line("command", row.command);
  std::string state = "running for " + human_duration(row.age_seconds);
  if (!row.alive) {
    state = row.how_ended;
    if (row.ended_seconds_ago) state += " " + human_duration(*row.ended_seconds_ago) + " ago";
  } else if (row.waiting_count != 0) {
    state += ", " + count_of(row.waiting_count, "thread") + " waiting for room";
  }
  page->line("state", state);
  std::string identity = std::to_string(row.pid);
  if (more.pid_in_namespace != row.pid) identity += " (itself it sees " + std::to_string(more.pid_in_namespace) + ")";
  if (row.parent_pid != 0) {
    identity += ", parent " + std::to_string(row.parent_pid) + (row.parent_name.empty() ? "" : " ") + row.parent_name;
  }
  page->line("pid", identity + ", user " + row.user);
  if (!row.container.empty()) page->line("container", row.container);
  std::string card = std::to_string(row.card) + " " + more.card_name;
  if (row.card != row.ordinal) card += " (its own number of it is " + std::to_string(row.ordinal) + ")";
  page->line("GPU", card);
  page->line("library", "gpucap " + more.version + (more.run_id.empty() ? "" : ", run " + more.run_id));
}

void figures(Sheet* page, const ProcessRow& row, const ProcessDetails& more) {
  std::string used = human_bytes(row.used_bytes);
  if (row.limit_bytes)
    used += " of " + human_bytes(*row.limit_bytes) + ", " + percent_of(row.used_bytes, *row.limit_bytes) + " %";
  page->line("used", used);
  page->line("", "linear " + human_bytes(more.linear_bytes) + ", arrays " + human_bytes(more.array_bytes) + ", pools " +
                     human_bytes(more.pool_bytes) + ", VMM " + human_bytes(more.vmm_bytes) + ", managed " +
                     human_bytes(more.managed_bytes));
  page->line("", "driver " + human_bytes(row.driver_bytes) + " (" + more.truth + "), promised to calls under way " +
                     human_bytes(more.reserved_bytes));
  std::string peak = human_bytes(row.peak_bytes);
  if (more.peak_seconds_ago) peak += ", " + human_duration(*more.peak_seconds_ago) + " ago";
  page->line("peak", peak);
  std::string cap = row.limit_bytes ? human_bytes(*row.limit_bytes) + " " + more.limit_source : "none: watched only";
  if (row.policy_limit_bytes) cap += ", the policy file allows " + human_bytes(*row.policy_limit_bytes);
  page->line("cap", cap);
  page->line("at it", more.on_limit);
  if (!row.group.empty()) {
    std::string group = row.group + ", uses " + human_bytes(row.group_used_bytes);
    if (row.group_limit_bytes) group += " of " + human_bytes(*row.group_limit_bytes);
    page->line("group", group);
  }
  page->line("refused",
             count_of(row.refused_count, "request") + ", " + human_bytes(more.refused_bytes) +
                 (more.failed_count != 0 ? ", and " + std::to_string(more.failed_count) + " by the driver" : ""),
             row.refused_count != 0 ? Style::kTrouble : Style::kPlain);
  if (more.waits_count != 0) {
    page->line("waited",
               count_of(more.waits_count, "request") + ", " + human_duration(more.waits_ns / 1000000000) + " in all");
  }
  if (more.observed_count != 0) {
    page->line("observed", count_of(more.observed_count, "request") + " over the limit let through, " +
                               human_bytes(more.observed_bytes));
  }
}

void apis(Sheet* page, const ProcessDetails& more, size_t columns) {
  page->heading("By entry point", "bytes as they were asked for");
  size_t width = 16;
  for (const ApiLine& api : more.apis) width = std::max(width, display_width(api.name));
  width = std::min(width, columns > 36 ? columns - 34 : 8);
  StyledLine header;
  add(&header,
      "  " + padded_right("NAME", width) + padded_left("CALLS", 12) + padded_left("REFUSED", 9) +
          padded_left("BYTES", 10),
      Style::kDim);
  page->put(std::move(header));
  for (const ApiLine& api : more.apis) {
    StyledLine line;
    add(&line, "  " + padded_right(fit(api.name, width), width) + padded_left(std::to_string(api.calls), 12));
    add(&line, padded_left(std::to_string(api.refused), 9), api.refused != 0 ? Style::kTrouble : Style::kPlain);
    add(&line, padded_left(human_bytes(api.bytes), 10));
    page->put(std::move(line));
  }
}

void sizes(Sheet* page, const ProcessRow& row, const ProcessDetails& more, size_t columns, bool ascii) {
  const auto live = static_cast<uint64_t>(std::max<int64_t>(row.live_count, 0));
  std::string aside = "from the event log";
  if (more.events_lost != 0 || more.blocks_known != live) {
    aside = "incomplete: " + std::to_string(more.blocks_known) + " of " + std::to_string(live) + " known";
    if (more.events_lost != 0) {
      aside +=
          ", " + std::to_string(more.events_lost) + " of " + std::to_string(more.events_written) + " events are gone";
    }
  }
  page->heading("Live blocks by size", aside);
  uint64_t most = 1;
  for (const SizeClassLine& size : more.sizes) most = std::max(most, size.bytes);
  const size_t room = columns > 50 ? std::min<size_t>(columns - 50, 40) : 0;
  for (const SizeClassLine& size : more.sizes) {
    StyledLine line;
    add(&line, "  up to " + padded_left(human_bytes(size.at_most_bytes), 9) +
                   padded_left(count_of(size.blocks, "block"), 16) + padded_left(human_bytes(size.bytes), 11) + "  ");
    const auto cells =
        static_cast<size_t>(static_cast<double>(size.bytes) / static_cast<double>(most) * static_cast<double>(room));
    add(&line, repeated(glyphs(ascii).data, std::max<size_t>(cells, room != 0 ? 1 : 0)), Style::kData);
    page->put(std::move(line));
  }
  if (more.sizes.empty()) page->line("", "none known", Style::kDim);
}

}  // namespace

std::vector<StyledLine> details_lines(const ScreenModel& model, const ProcessRow& row, size_t columns, bool ascii) {
  std::vector<StyledLine> lines;
  Sheet page(&lines, columns);
  if (!model.details || model.details->key != row.key) {
    page.line("command", row.command);
    page.line("", "being read", Style::kDim);
  } else {
    const ProcessDetails& more = *model.details;
    who(&page, row, more);
    lines.emplace_back();
    figures(&page, row, more);
    page.heading("Last refusals", more.refusals.empty() ? "none in the event log" : "the latest first");
    for (const EventLine& event : more.refusals) {
      StyledLine line;
      add(&line, "  ");
      for (const Span& span : event_line(event)) add(&line, span.text, span.style);
      page.put(std::move(line));
    }
    apis(&page, more, columns);
    sizes(&page, row, more, columns, ascii);
  }
  for (StyledLine& line : lines) line = cut(line, columns);
  return lines;
}

}  // namespace gpucap::tools
