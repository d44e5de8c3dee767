// A whole screen: model, state and size in, lines out. Pure. Every part gives way before the table does, and the screen
// is never larger than asked for, down to one line of one column.
#pragma once

#include <optional>
#include <vector>

#include "tools/top/view_frame.h"
#include "tools/top/view_model.h"
#include "tools/top/view_rows.h"
#include "tools/top/view_state.h"

namespace gpucap::tools {

// How many lines each part gets.
struct ScreenPlan {
  size_t title = 0, cards = 0, table = 0, history = 0, events = 0, footer = 0;
};
ScreenPlan plan_screen(const ScreenModel& model, const ViewState& state, ScreenSize size);

// How far PgDn goes: rows of the table, or lines of a page.
size_t lines_a_page(const ScreenModel& model, const ViewState& state, ScreenSize size);

// Moves state->first_row so that the selection is in sight, and first_line so that a page is not scrolled past its end.
void scroll_into_sight(const ScreenModel& model, ScreenSize size, ViewState* state);

Frame compose_screen(const ScreenModel& model, const ViewState& state, ScreenSize size);

}  // namespace gpucap::tools
