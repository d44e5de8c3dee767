// The page that ? shows: see view_parts.h.
#include "tools/common/text_width.h"
#include "tools/top/view_parts.h"

namespace gpucap::tools {

std::vector<StyledLine> help_lines(bool ascii) {
  constexpr struct {
    const char* keys;
    const char* what;
  } kKeys[] = {
      {"Up Down PgUp PgDn Home End", "choose a process"},
      {"Enter", "all about it: by entry point, live blocks, refusals"},
      {"P M N T", "sort by use, cap, pid, age"},
      {"< >", "sort by the column to the left, to the right"},
      {"I", "the other way round"},
      {"/ F3, then n", "search for a pid, user, group or command; the next one"},
      {"\\ F4", "show only what matches; Esc shows all again"},
      {"t F5", "tree by parent, by group, no tree"},
      {"g", "tree by group, and back"},
      {"x", "hide or show processes that ended"},
      {"e", "event pane: all, selected process, refusals only, none"},
      {"h", "hide or show the graph"},
      {"l", "change the cap of a running process (its owner, or root)"},
      {"k F9", "send it a signal"},
      {"? F1", "this page"},
      {"q F10 Ctrl-C", "leave"},
  };
  std::vector<StyledLine> lines;
  StyledLine bars;
  add(&bars, "Bars: ", Style::kStrong);
  for (const Span& span : legend(ascii)) add(&bars, span.text, span.style);
  lines.push_back(std::move(bars));
  for (const char* text : {"  data: of processes under gpucap. driver: contexts and code of those processes,",
                           "  and what the driver keeps for itself. others: every process that gpucap does not",
                           "  see, as NVML tells. caps: the sum of all caps on the card; over 100% may not fit."}) {
    lines.emplace_back();
    add(&lines.back(), text);
  }
  lines.emplace_back();
  for (const auto& entry : kKeys) {
    lines.emplace_back();
    add(&lines.back(), "  " + padded_right(entry.keys, 28), Style::kKey);
    add(&lines.back(), entry.what);
  }
  return lines;
}

}  // namespace gpucap::tools
