// Which rows the table has, and in which order: filter, sort, tree. Pure; used by the table's view and by the keys, so
// that "one down" means the row that is seen below.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/top/view_model.h"
#include "tools/top/view_state.h"

namespace gpucap::tools {

struct ArrangedRow {
  std::optional<size_t> index;  // into ScreenModel::rows; none: a heading
  std::string heading;          // "parent 4711 torchrun", "group train"
  uint64_t heading_used_bytes = 0;
  std::optional<uint64_t> heading_limit_bytes;
  size_t depth = 0;
  bool last_of_siblings = false;
};

// The living first, then the ended, whatever the order.
std::vector<ArrangedRow> arrange(const ScreenModel& model, const ViewState& state);

// Where the selection is, or the first process; none if there is no process to select.
std::optional<size_t> selected_position(const std::vector<ArrangedRow>& rows, const ScreenModel& model,
                                        const std::string& key);

bool matches(const ProcessRow& row, const std::string& text);  // pid, user, group or command, in any letter case

const char* sort_name(SortBy sort);

}  // namespace gpucap::tools
