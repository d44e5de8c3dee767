// The parts of a screen, each a pure function of the model and the state to lines no wider than `columns`.
// view_screen.cpp puts them together.
#pragma once

#include <vector>

#include "tools/top/view_frame.h"
#include "tools/top/view_model.h"
#include "tools/top/view_rows.h"
#include "tools/top/view_state.h"

namespace gpucap::tools {

// A line a card; where that is more than `most_lines`, several cards share a line, and at last some are only counted.
std::vector<StyledLine> card_lines(const std::vector<CardView>& cards, size_t columns, size_t most_lines, bool ascii);
StyledLine legend(bool ascii);

// The header and `lines - 1` rows from state.first_row on.
std::vector<StyledLine> table_lines(const ScreenModel& model, const ViewState& state,
                                    const std::vector<ArrangedRow>& rows, size_t columns, size_t lines);

// A rule with a title, then the graph in the other lines.
std::vector<StyledLine> history_lines(const ScreenModel& model, const ProcessRow& row, size_t columns, size_t lines,
                                      bool ascii);

// A rule with a title, then the latest events, the newest last.
std::vector<StyledLine> event_lines(const ScreenModel& model, const ViewState& state, size_t columns, size_t lines);
StyledLine event_line(const EventLine& event);
const char* refused_by_text(uint8_t refused_by);

// Whole pages, of any length: the screen shows a stretch of them.
std::vector<StyledLine> details_lines(const ScreenModel& model, const ProcessRow& row, size_t columns, bool ascii);
std::vector<StyledLine> help_lines(bool ascii);

StyledLine titled_rule(const std::string& title, size_t columns, bool ascii);

}  // namespace gpucap::tools
