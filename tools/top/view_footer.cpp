// The last line: see view_footer.h.
#include "tools/top/view_footer.h"

#include <csignal>

#include "tools/common/format.h"
#include "tools/common/text_width.h"

namespace gpucap::tools {
namespace {

constexpr struct {
  int number;
  const char* name;
} kSignals[] = {{SIGTERM, "TERM"}, {SIGINT, "INT"},   {SIGHUP, "HUP"},   {SIGQUIT, "QUIT"}, {SIGKILL, "KILL"},
                {SIGSTOP, "STOP"}, {SIGCONT, "CONT"}, {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}};

std::string target_name(const ScreenModel& model, const ViewState& state) {
  for (const ProcessRow& row : model.rows) {
    if (row.key == state.target_key)
      return std::to_string(row.pid) + " (" + row.command.substr(0, row.command.find(' ')) + ")";
  }
  return "a process that is gone";
}

std::string limit_question(const ScreenModel& model, const ViewState& state) {
  std::string text = "[y/n] Change the cap of " + target_name(model, state);
  for (const ProcessRow& row : model.rows) {
    if (row.key != state.target_key) continue;
    text +=
        " on GPU " + std::to_string(row.card) + " from " + (row.limit_bytes ? human_bytes(*row.limit_bytes) : "none");
    text += " to " + (state.limit_bytes == UINT64_MAX ? "none" : human_bytes(state.limit_bytes));
    if (row.policy_limit_bytes && state.limit_bytes > *row.policy_limit_bytes) {
      text += " (the policy file allows " + human_bytes(*row.policy_limit_bytes) + ")";
    }
    if (state.limit_bytes < row.used_bytes) text += " (it uses " + human_bytes(row.used_bytes) + ")";
  }
  return text + "? ";
}

std::string last_columns(std::string text, size_t columns) {
  while (display_width(text) > columns) {
    size_t length = 1;
    while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) ++length;
    text.erase(0, length);
  }
  return text;
}

// As many keys as fit, the most needed first.
StyledLine keys_line(const ViewState& state, size_t columns) {
  StyledLine line;
  const auto key = [&](const char* keys, const char* what) {
    const size_t width = display_width(keys) + 1 + display_width(what);
    const size_t gap = line.empty() ? 0 : 2;
    if (line_width(line) + gap + width > columns) return;
    add(&line, std::string(gap, ' '));
    add(&line, keys, Style::kKey);
    add(&line, std::string(" ") + what);
  };
  key("?", "help");
  key("q", "quit");
  if (state.page != Page::kTable) {
    key("Esc", "back");
    key("Up/Down", "scroll");
    if (state.page == Page::kHelp) return line;
  } else {
    key("Enter", "details");
    key("/", "search");
    key("\\", "filter");
    key("t", "tree");
    key("<>I", "sort");
  }
  key("l", "cap");
  key("k", "signal");
  if (state.page == Page::kTable) key("e", "events");
  return line;
}

}  // namespace

std::string signal_name(int number) {
  for (const auto& entry : kSignals) {
    if (entry.number == number) return std::string("SIG") + entry.name;
  }
  return "signal " + std::to_string(number);
}

int signal_number(const std::string& text) {
  if (!text.empty() && text.size() <= 2 && text.find_first_not_of("0123456789") == std::string::npos) {
    const int number = std::stoi(text);
    return number <= SIGRTMAX ? number : 0;
  }
  std::string name;
  for (const char c : text) name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  if (name.rfind("SIG", 0) == 0) name.erase(0, 3);
  for (const auto& entry : kSignals) {
    if (name == entry.name) return entry.number;
  }
  return 0;
}

StyledLine footer_line(const ScreenModel& model, const ViewState& state, size_t columns) {
  StyledLine line;
  switch (state.prompt) {
    case Prompt::kSearch:
      add(&line, "Search: ", Style::kStrong);
      add(&line, state.input);
      break;
    case Prompt::kFilter:
      add(&line, "Filter: ", Style::kStrong);
      add(&line, state.input);
      break;
    case Prompt::kSignal:
      add(&line, "Signal for " + target_name(model, state), Style::kStrong);
      add(&line, " [TERM, or INT HUP QUIT KILL STOP CONT or a number]: " + state.input);
      break;
    case Prompt::kConfirmSignal:
      add(&line, "[y/n] Send " + signal_name(state.signal) + " to " + target_name(model, state) + "? ",
          Style::kWarning);
      break;
    case Prompt::kLimit:
      add(&line, "New cap for " + target_name(model, state), Style::kStrong);
      add(&line, " [4G, 50%, none]: " + state.input);
      break;
    case Prompt::kConfirmLimit:
      add(&line, limit_question(model, state), Style::kWarning);
      break;
    case Prompt::kNone:
      if (state.message.empty()) return keys_line(state, columns);
      add(&line, state.message, state.message_is_trouble ? Style::kTrouble : Style::kStrong);
      break;
  }
  // Of what is being typed, the end must be seen; of a question, its beginning.
  const bool typing =
      state.prompt != Prompt::kNone && state.prompt != Prompt::kConfirmSignal && state.prompt != Prompt::kConfirmLimit;
  if (!typing || line_width(line) < columns) return cut(line, columns);
  StyledLine tail;
  add(&tail, ">", Style::kStrong);
  add(&tail, last_columns(state.input, columns > 2 ? columns - 2 : 0));
  return cut(tail, columns);
}

}  // namespace gpucap::tools
