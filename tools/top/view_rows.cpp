// Filter, sort and tree: see view_rows.h.
#include "tools/top/view_rows.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace gpucap::tools {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  // Byte by byte: letters beyond ASCII are compared as they are.
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

double fraction(const ProcessRow& row) {
  if (!row.limit_bytes || *row.limit_bytes == 0) return -1;
  return static_cast<double>(row.used_bytes) / static_cast<double>(*row.limit_bytes);
}

// Below zero: a comes first. Figures go from the largest down, names and numbers from the smallest up, as in htop.
int compare(const ProcessRow& a, const ProcessRow& b, SortBy sort) {
  const auto up = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  switch (sort) {
    case SortBy::kPid:
      return up(a.pid, b.pid);
    case SortBy::kUser:
      return up(a.user, b.user);
    case SortBy::kCard:
      return up(a.card, b.card);
    case SortBy::kUsed:
      return up(b.used_bytes, a.used_bytes);
    case SortBy::kLimit:
      return up(b.limit_bytes.value_or(0), a.limit_bytes.value_or(0));
    case SortBy::kPercent:
      return up(fraction(b), fraction(a));
    case SortBy::kPeak:
      return up(b.peak_bytes, a.peak_bytes);
    case SortBy::kDriver:
      return up(b.driver_bytes, a.driver_bytes);
    case SortBy::kLive:
      return up(b.live_count, a.live_count);
    case SortBy::kRefused:
      return up(b.refused_count, a.refused_count);
    case SortBy::kAge:
      return up(b.age_seconds, a.age_seconds);
    case SortBy::kCommand:
      return up(a.command, b.command);
  }
  return 0;
}

class Arranger {
 public:
  Arranger(const ScreenModel& model, const ViewState& state) : model_(model), state_(state) {}

  std::vector<ArrangedRow> run() {
    for (size_t i = 0; i < model_.rows.size(); ++i) {
      const ProcessRow& row = model_.rows[i];
      if (!row.alive && !state_.show_ended) continue;
      if (state_.filter.empty() || matches(row, state_.filter)) order_.push_back(i);
    }
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) { return before(a, b); });
    if (state_.tree == Tree::kParent) by_parent();
    if (state_.tree == Tree::kGroup) by_group();
    if (state_.tree == Tree::kFlat) {
      for (const size_t i : order_) put(i, 0, false);
    }
    return std::move(result_);
  }

 private:
  bool before(size_t a, size_t b) const {
    const ProcessRow& x = model_.rows[a];
    const ProcessRow& y = model_.rows[b];
    if (x.alive != y.alive) return x.alive;
    int way = compare(x, y, state_.sort);
    if (state_.inverted) way = -way;
    if (way != 0) return way < 0;
    return x.pid != y.pid ? x.pid < y.pid : x.key < y.key;
  }

  void put(size_t index, size_t depth, bool last) {
    ArrangedRow row;
    row.index = index;
    row.depth = depth;
    row.last_of_siblings = last;
    result_.push_back(std::move(row));
  }

  void put_heading(const std::string& text, const std::vector<size_t>& below, std::optional<uint64_t> limit_bytes) {
    ArrangedRow row;
    row.heading = text;
    row.heading_limit_bytes = limit_bytes;
    for (const size_t i : below) row.heading_used_bytes += model_.rows[i].alive ? model_.rows[i].used_bytes : 0;
    result_.push_back(std::move(row));
  }

  // A process that is shown stands above its children; a parent without rows of its own becomes a heading.
  void by_parent() {
    std::set<int> shown;
    for (const size_t i : order_) shown.insert(model_.rows[i].pid);
    std::set<int> done;
    for (const size_t i : order_) {
      const ProcessRow& row = model_.rows[i];
      parents_[row.pid] = row.parent_pid;
      rows_of_[row.pid].push_back(i);
      if (row.parent_pid != 0 && row.parent_pid != row.pid) children_[row.parent_pid].push_back(i);
    }
    for (const size_t i : order_) {
      const ProcessRow& row = model_.rows[i];
      const bool has_parent = row.parent_pid != 0 && row.parent_pid != row.pid;
      if (placed_.count(i) != 0) continue;
      if (has_parent && shown.count(row.parent_pid) != 0 && !is_own_ancestor(row.pid)) continue;
      if (!has_parent || shown.count(row.parent_pid) != 0) {
        put_family(row.pid, 0, false);
      } else if (done.insert(row.parent_pid).second) {
        const std::vector<size_t>& below = children_[row.parent_pid];
        put_heading("parent " + std::to_string(row.parent_pid) + (row.parent_name.empty() ? "" : " ") + row.parent_name,
                    below, std::nullopt);
        put_children(row.parent_pid, 1);
      }
    }
  }

  // Damaged files could name each other as parents.
  bool is_own_ancestor(int pid) const {
    int at = pid;
    for (size_t steps = 0; steps <= order_.size(); ++steps) {
      const auto found = parents_.find(at);
      if (found == parents_.end()) return false;
      at = found->second;
      if (at == pid) return true;
    }
    return true;
  }

  // All rows of one process (it may use several cards), then its children.
  void put_family(int pid, size_t depth, bool last) {
    for (const size_t i : rows_of_[pid]) {
      if (placed_.insert(i).second) put(i, depth, last);
    }
    put_children(pid, depth + 1);
  }

  void put_children(int pid, size_t depth) {
    const auto found = children_.find(pid);
    if (found == children_.end()) return;
    const std::vector<size_t> below = found->second;
    for (size_t i = 0; i < below.size(); ++i) {
      if (placed_.count(below[i]) == 0) put_family(model_.rows[below[i]].pid, depth, i + 1 == below.size());
    }
  }

  void by_group() {
    std::map<std::string, std::vector<size_t>> groups;
    for (const size_t i : order_) groups[model_.rows[i].group].push_back(i);
    // Those in no group come last, as they are.
    const std::vector<size_t> alone = std::move(groups[""]);
    groups.erase("");
    for (const auto& [name, below] : groups) {
      std::map<uint32_t, uint64_t> limits;
      for (const size_t i : below) {
        if (model_.rows[i].group_limit_bytes) limits[model_.rows[i].card] = *model_.rows[i].group_limit_bytes;
      }
      std::optional<uint64_t> limit_bytes;
      for (const auto& [card, bytes] : limits) limit_bytes = limit_bytes.value_or(0) + bytes;
      put_heading("group " + name, below, limit_bytes);
      for (size_t i = 0; i < below.size(); ++i) put(below[i], 1, i + 1 == below.size());
    }
    if (!groups.empty() && !alone.empty()) put_heading("in no group", alone, std::nullopt);
    for (size_t i = 0; i < alone.size(); ++i) put(alone[i], groups.empty() ? 0 : 1, i + 1 == alone.size());
  }

  const ScreenModel& model_;
  const ViewState& state_;
  std::vector<size_t> order_;
  std::map<int, int> parents_;
  std::map<int, std::vector<size_t>> rows_of_;
  std::map<int, std::vector<size_t>> children_;
  std::set<size_t> placed_;
  std::vector<ArrangedRow> result_;
};

}  // namespace

std::vector<ArrangedRow> arrange(const ScreenModel& model, const ViewState& state) {
  return Arranger(model, state).run();
}

std::optional<size_t> selected_position(const std::vector<ArrangedRow>& rows, const ScreenModel& model,
                                        const std::string& key) {
  std::optional<size_t> first;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].index) continue;
    if (!first) first = i;
    if (model.rows[*rows[i].index].key == key) return i;
  }
  return first;
}

bool matches(const ProcessRow& row, const std::string& text) {
  const std::string wanted = lower(text);
  for (const std::string& field : {std::to_string(row.pid), row.user, row.group, row.command}) {
    if (lower(field).find(wanted) != std::string::npos) return true;
  }
  return false;
}

const char* sort_name(SortBy sort) {
  switch (sort) {
    case SortBy::kPid:
      return "PID";
    case SortBy::kUser:
      return "USER";
    case SortBy::kCard:
      return "GPU";
    case SortBy::kUsed:
      return "USED";
    case SortBy::kLimit:
      return "CAP";
    case SortBy::kPercent:
      return "%";
    case SortBy::kPeak:
      return "PEAK";
    case SortBy::kDriver:
      return "DRIVER";
    case SortBy::kLive:
      return "LIVE";
    case SortBy::kRefused:
      return "REFUSED";
    case SortBy::kAge:
      return "AGE";
    case SortBy::kCommand:
      return "COMMAND";
  }
  return "?";
}

}  // namespace gpucap::tools
