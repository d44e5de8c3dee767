// The last line of the screen: keys, a message, or a question. Pure.
#pragma once

#include <string>

#include "tools/top/view_frame.h"
#include "tools/top/view_model.h"
#include "tools/top/view_state.h"

namespace gpucap::tools {

StyledLine footer_line(const ScreenModel& model, const ViewState& state, size_t columns);

// "SIGTERM"; the ones that the screen offers, else the number.
std::string signal_name(int number);
// The number of "15", "term" or "SIGTERM"; 0 if it is none.
int signal_number(const std::string& text);

}  // namespace gpucap::tools
