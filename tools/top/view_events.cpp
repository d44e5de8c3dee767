// The event pane: see view_parts.h.
#include "tools/common/format.h"
#include "tools/common/names.h"
#include "tools/common/text_width.h"
#include "tools/top/view_parts.h"
#include "wire/layout.h"

namespace gpucap::tools {
namespace {

Style style_of(uint8_t operation) {
  switch (operation) {
    case GPUCAP_OP_REFUSE:
    case GPUCAP_OP_FAIL:
      return Style::kTrouble;
    case GPUCAP_OP_WAIT:
    case GPUCAP_OP_OBSERVE:
    case GPUCAP_OP_LIMIT:
      return Style::kWarning;
    case GPUCAP_OP_RELEASE:
    case GPUCAP_OP_DRIVER:
      return Style::kDim;
    default:
      return Style::kPlain;
  }
}

const char* scope_text(EventScope scope) {
  switch (scope) {
    case EventScope::kAll:
      return "events of all";
    case EventScope::kSelected:
      return "events of the selected process";
    case EventScope::kTroubles:
      return "refusals, waits and changes of limits";
    case EventScope::kHidden:
      break;
  }
  return "";
}

}  // namespace

const char* refused_by_text(uint8_t refused_by) {
  switch (refused_by) {
    case GPUCAP_REFUSED_BY_CAP:
      return "over its cap";
    case GPUCAP_REFUSED_BY_GROUP:
      return "over the group's budget";
    case GPUCAP_REFUSED_BY_CARD:
      return "the card is full";
    default:
      return "";
  }
}

StyledLine event_line(const EventLine& event) {
  StyledLine line;
  add(&line, event.time, Style::kDim);
  add(&line, " " + padded_left(std::to_string(event.pid), 7) + " GPU " + std::to_string(event.card) + " ");
  add(&line, padded_right(operation_name(event.operation), 8), style_of(event.operation));
  add(&line, padded_left(human_bytes(event.bytes), 9) + "  ");
  if (const std::string reason = refused_by_text(event.refused_by); !reason.empty()) {
    add(&line, reason + ", ", style_of(event.operation));
  }
  if (event.used_after_bytes) add(&line, "used " + human_bytes(*event.used_after_bytes) + "  ");
  add(&line, event.call);
  // A refusal's is always out of memory.
  if (!event.result.empty() && event.operation != GPUCAP_OP_REFUSE) add(&line, "  " + event.result, Style::kDim);
  return line;
}

std::vector<StyledLine> event_lines(const ScreenModel& model, const ViewState& state, size_t columns, size_t lines) {
  if (lines == 0) return {};
  std::string title = scope_text(state.events);
  if (model.events_skipped != 0) title += " (" + std::to_string(model.events_skipped) + " came too fast to show)";
  std::vector<StyledLine> result = {titled_rule(title, columns, state.ascii)};
  const size_t shown = std::min(model.events.size(), lines - 1);
  for (size_t i = model.events.size() - shown; i < model.events.size(); ++i) {
    result.push_back(cut(event_line(model.events[i]), columns));
  }
  return result;
}

}  // namespace gpucap::tools
