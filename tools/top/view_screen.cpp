// The parts put together: see view_screen.h.
#include "tools/top/view_screen.h"

#include <algorithm>

#include "tools/common/format.h"
#include "tools/common/text_width.h"
#include "tools/top/view_footer.h"
#include "tools/top/view_parts.h"

namespace gpucap::tools {
namespace {

constexpr size_t kLeastTable = 5;  // header and four rows, before graph or events get anything

const ProcessRow* selected_row(const ScreenModel& model, const ViewState& state, const std::vector<ArrangedRow>& rows) {
  const std::optional<size_t> at = selected_position(rows, model, state.selected_key);
  return at ? &model.rows[*rows[*at].index] : nullptr;
}

// Details stay with their process even when a filter hides it.
const ProcessRow* detailed_row(const ScreenModel& model, const ViewState& state) {
  for (const ProcessRow& row : model.rows) {
    if (row.key == state.selected_key) return &row;
  }
  return nullptr;
}

StyledLine title_line(const ScreenModel& model, const ViewState& state, size_t columns) {
  std::vector<int> living;
  std::vector<int> ended;
  uint64_t waiting = 0;
  for (const ProcessRow& row : model.rows) {
    (row.alive ? living : ended).push_back(row.pid);
    waiting += row.alive ? row.waiting_count : 0;
  }
  const auto distinct = [](std::vector<int>* pids) {
    std::sort(pids->begin(), pids->end());
    return std::unique(pids->begin(), pids->end()) - pids->begin();
  };
  const auto count = distinct(&living);
  StyledLine line;
  add(&line, "gpucap-top", Style::kStrong);
  add(&line, "  " + model.time + "  " + std::to_string(count) + (count == 1 ? " process" : " processes"));
  if (!ended.empty()) add(&line, ", " + std::to_string(distinct(&ended)) + " ended");
  if (waiting != 0) add(&line, ", " + std::to_string(waiting) + " waiting", Style::kWarning);
  if (!model.unreadable.empty()) {
    add(&line, "  " + std::to_string(model.unreadable.size()) + " unreadable: " + model.unreadable.front(),
        Style::kTrouble);
  }
  if (!state.filter.empty()) add(&line, "  filter: " + state.filter, Style::kWarning);
  if (!model.nvml_trouble.empty() && !model.cards.empty()) {
    add(&line, "  use by others unknown: " + model.nvml_trouble, Style::kDim);
  }
  const StyledLine bars = legend(state.ascii);
  if (!model.cards.empty() && line_width(line) + 2 + line_width(bars) <= columns) {
    add_spaces_up_to(&line, columns - line_width(bars));
    for (const Span& span : bars) add(&line, span.text, span.style);
  }
  return cut(line, columns);
}

std::vector<StyledLine> page_lines(const ScreenModel& model, const ViewState& state, size_t columns) {
  if (state.page == Page::kHelp) {
    std::vector<StyledLine> lines = help_lines(state.ascii);
    for (StyledLine& line : lines) line = cut(line, columns);
    return lines;
  }
  if (const ProcessRow* row = detailed_row(model, state)) return details_lines(model, *row, columns, state.ascii);
  StyledLine gone;
  add(&gone, "This process is no longer listed.", Style::kDim);
  return {cut(gone, columns)};
}

void append(std::vector<StyledLine>* to, std::vector<StyledLine> lines, size_t count) {
  lines.resize(count);
  for (StyledLine& line : lines) to->push_back(std::move(line));
}

void only_ascii(Frame* frame) {
  for (StyledLine& line : frame->lines) {
    for (Span& span : line) span.text = as_ascii(span.text);
  }
}

}  // namespace

ScreenPlan plan_screen(const ScreenModel& model, const ViewState& state, ScreenSize size) {
  ScreenPlan plan;
  size_t left = size.lines;
  const auto take = [&](size_t wanted, size_t keep) {
    const size_t got = left > keep ? std::min(wanted, left - keep) : 0;
    left -= got;
    return got;
  };
  plan.footer = state.prompt != Prompt::kNone || !state.message.empty() ? take(1, 0) : take(1, 4);
  if (state.page != Page::kTable) {
    plan.table = left;
    return plan;
  }
  plan.title = take(1, 3);
  // At most a fifth of the screen for the cards, but for one or two.
  plan.cards = std::min(take(std::max<size_t>(size.lines / 5, 2), kLeastTable), model.cards.size());
  left = size.lines - plan.footer - plan.title - plan.cards;
  // Events and graph take turns below the table: what is left over goes to the table.
  if (state.events != EventScope::kHidden && left >= kLeastTable + 4) {
    plan.events = std::clamp<size_t>(size.lines / 5, 4, 10);
    left -= std::min(plan.events, left);
  }
  if (state.show_history && !model.rows.empty() && left >= kLeastTable + 5) {
    plan.history = std::clamp<size_t>(size.lines / 5, 5, 9);
    left -= std::min(plan.history, left);
  }
  plan.table = left;
  return plan;
}

size_t lines_a_page(const ScreenModel& model, const ViewState& state, ScreenSize size) {
  const size_t lines = plan_screen(model, state, size).table;
  if (state.page != Page::kTable) return std::max<size_t>(lines, 1);
  return lines > 1 ? lines - 1 : 1;
}

void scroll_into_sight(const ScreenModel& model, ScreenSize size, ViewState* state) {
  const size_t page = lines_a_page(model, *state, size);
  if (state->page != Page::kTable) {
    const size_t lines = page_lines(model, *state, size.columns).size();
    state->first_line = std::min(state->first_line, lines > page ? lines - page : 0);
    return;
  }
  const std::vector<ArrangedRow> rows = arrange(model, *state);
  const size_t last_first = rows.size() > page ? rows.size() - page : 0;
  state->first_row = std::min(state->first_row, last_first);
  const std::optional<size_t> at = selected_position(rows, model, state->selected_key);
  if (!at) return;
  if (*at < state->first_row) state->first_row = *at;
  if (*at >= state->first_row + page) state->first_row = *at + 1 - page;
  // The heading above the first process is worth a line.
  if (*at == 1 && page > 1 && !rows[0].index) state->first_row = 0;
}

Frame compose_screen(const ScreenModel& model, const ViewState& state, ScreenSize size) {
  Frame frame;
  const ScreenPlan plan = plan_screen(model, state, size);
  if (state.page == Page::kTable) {
    const std::vector<ArrangedRow> rows = arrange(model, state);
    if (plan.title != 0) frame.lines.push_back(title_line(model, state, size.columns));
    append(&frame.lines, card_lines(model.cards, size.columns, plan.cards, state.ascii), plan.cards);
    append(&frame.lines, table_lines(model, state, rows, size.columns, plan.table), plan.table);
    const ProcessRow* selected = selected_row(model, state, rows);
    if (selected != nullptr) {
      append(&frame.lines, history_lines(model, *selected, size.columns, plan.history, state.ascii), plan.history);
    } else {
      append(&frame.lines, {}, plan.history);
    }
    append(&frame.lines, event_lines(model, state, size.columns, plan.events), plan.events);
  } else {
    std::vector<StyledLine> lines = page_lines(model, state, size.columns);
    const size_t first = std::min(state.first_line, lines.size());
    lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(first));
    append(&frame.lines, std::move(lines), plan.table);
  }
  if (plan.footer != 0) {
    StyledLine footer = footer_line(model, state, size.columns);
    if (state.prompt != Prompt::kNone) {
      frame.cursor_column = static_cast<int>(std::min(line_width(footer), size.columns == 0 ? 0 : size.columns - 1));
    }
    frame.lines.push_back(std::move(footer));
  }
  if (state.ascii) only_ascii(&frame);
  return frame;
}

}  // namespace gpucap::tools
