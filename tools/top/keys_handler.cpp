// Keys: see keys_handler.h.
#include "tools/top/keys_handler.h"

#include <algorithm>
#include <optional>

#include "shim/core/size.h"
#include "tools/top/view_footer.h"
#include "tools/top/view_rows.h"

namespace gpucap::tools {
namespace {

constexpr size_t kMostTyped = 64;

class Handler {
 public:
  Handler(const ScreenModel& model, size_t page, ViewState* state)
      : model_(model), page_(static_cast<std::ptrdiff_t>(page)), state_(*state) {}

  Command handle(const Key& key) {
    state_.message.clear();
    state_.message_is_trouble = false;
    if (key.code == Key::Code::kText && key.text == "\x03") return quit();  // Ctrl-C, where no signal comes of it
    switch (state_.prompt) {
      case Prompt::kNone:
        return state_.page == Page::kTable ? on_table(key) : on_page(key);
      case Prompt::kConfirmSignal:
      case Prompt::kConfirmLimit:
        return on_question(key);
      default:
        on_typing(key);
        return {};
    }
  }

 private:
  static Command quit() { return {Command::Kind::kQuit, "", 0, 0}; }

  const ProcessRow* row_of(const std::string& key) const {
    for (const ProcessRow& row : model_.rows) {
      if (row.key == key) return &row;
    }
    return nullptr;
  }

  const ProcessRow* selected() const {
    if (state_.page == Page::kDetails) return row_of(state_.selected_key);
    const std::vector<ArrangedRow> rows = arrange(model_, state_);
    const std::optional<size_t> at = selected_position(rows, model_, state_.selected_key);
    return at ? &model_.rows[*rows[*at].index] : nullptr;
  }

  void say(const std::string& text, bool trouble = true) {
    state_.message = text;
    state_.message_is_trouble = trouble;
  }

  void move(std::ptrdiff_t by) {
    const std::vector<ArrangedRow> rows = arrange(model_, state_);
    std::vector<size_t> processes;  // headings are not stopped at
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].index) processes.push_back(i);
    }
    const std::optional<size_t> at = selected_position(rows, model_, state_.selected_key);
    if (!at) return;
    const auto here = std::find(processes.begin(), processes.end(), *at) - processes.begin();
    const auto there = std::clamp<std::ptrdiff_t>(here + by, 0, static_cast<std::ptrdiff_t>(processes.size()) - 1);
    state_.selected_key = model_.rows[*rows[processes[static_cast<size_t>(there)]].index].key;
  }

  void scroll(std::ptrdiff_t by) {
    const auto first = static_cast<std::ptrdiff_t>(state_.first_line) + by;
    state_.first_line = static_cast<size_t>(std::max<std::ptrdiff_t>(first, 0));  // its end is found by the view
  }

  // True if the key was one that moves.
  bool moves(const Key& key) {
    constexpr std::ptrdiff_t kFar = 1 << 20;
    std::ptrdiff_t by = 0;
    switch (key.code) {
      case Key::Code::kUp:
        by = -1;
        break;
      case Key::Code::kDown:
        by = 1;
        break;
      case Key::Code::kPageUp:
        by = -page_;
        break;
      case Key::Code::kPageDown:
        by = page_;
        break;
      case Key::Code::kHome:
        by = -kFar;
        break;
      case Key::Code::kEnd:
        by = kFar;
        break;
      default:
        return false;
    }
    if (state_.page == Page::kTable) {
      move(by);
    } else {
      scroll(by);
    }
    return true;
  }

  // Function keys stand for the letters that people also know.
  static char letter_of(const Key& key) {
    if (key.code == Key::Code::kFunction) {
      constexpr char kLetters[] = {0, '?', 0, '/', '\\', 't', 0, 0, 0, 'k', 'q'};
      return key.function >= 0 && key.function <= 10 ? kLetters[key.function] : '\0';
    }
    return key.code == Key::Code::kText && key.text.size() == 1 ? key.text[0] : '\0';
  }

  Command on_table(const Key& key) {
    if (moves(key)) return {};
    if (key.code == Key::Code::kEnter) {
      open_details();
      return {};
    }
    if (key.code == Key::Code::kEscape) {
      state_.filter.clear();
      return {};
    }
    const char letter = letter_of(key);
    switch (letter) {
      case 'q':
      case 'Q':
        return quit();
      case '?':
        state_.page = Page::kHelp;
        state_.first_line = 0;
        break;
      case '/':
        ask(Prompt::kSearch, "");
        break;
      case 'n':
        search_next(true);
        break;
      case '\\':
        ask(Prompt::kFilter, state_.filter);
        break;
      case 'k':
        ask_signal();
        break;
      case 'l':
        ask_limit();
        break;
      default:
        change_view(letter);
    }
    return {};
  }

  void change_view(char letter) {
    switch (letter) {
      case 'P':
        sort_by(SortBy::kUsed);
        break;
      case 'M':
        sort_by(SortBy::kLimit);
        break;
      case 'N':
        sort_by(SortBy::kPid);
        break;
      case 'T':
        sort_by(SortBy::kAge);
        break;
      case '<':
      case ',':
        shift_sort(-1);
        break;
      case '>':
      case '.':
        shift_sort(1);
        break;
      case 'I':
        state_.inverted = !state_.inverted;
        break;
      case 't':
        state_.tree = state_.tree == Tree::kFlat     ? Tree::kParent
                      : state_.tree == Tree::kParent ? Tree::kGroup
                                                     : Tree::kFlat;
        say(state_.tree == Tree::kFlat     ? "No tree"
            : state_.tree == Tree::kParent ? "Tree by parent"
                                           : "Tree by group",
            false);
        break;
      case 'g':
        state_.tree = state_.tree == Tree::kGroup ? Tree::kFlat : Tree::kGroup;
        break;
      case 'x':
        state_.show_ended = !state_.show_ended;
        say(state_.show_ended ? "Ended processes are shown" : "Ended processes are hidden", false);
        break;
      case 'h':
        state_.show_history = !state_.show_history;
        break;
      case 'e':
        state_.events = static_cast<EventScope>((static_cast<int>(state_.events) + 1) % 4);
        break;
      default:
        break;
    }
  }

  void sort_by(SortBy sort) {
    state_.sort = sort;
    state_.inverted = false;
  }

  void shift_sort(int by) {
    constexpr int kColumns = static_cast<int>(SortBy::kCommand) + 1;
    sort_by(static_cast<SortBy>((static_cast<int>(state_.sort) + by + kColumns) % kColumns));
    say(std::string("Sorted by ") + sort_name(state_.sort), false);
  }

  Command on_page(const Key& key) {
    if (moves(key)) return {};
    const char letter = letter_of(key);
    if (key.code == Key::Code::kEscape || key.code == Key::Code::kEnter || key.code == Key::Code::kBackspace) {
      state_.page = Page::kTable;
    } else if (letter == 'q' || letter == 'Q') {
      return quit();
    } else if (letter == '?') {
      state_.page = state_.page == Page::kHelp ? Page::kTable : Page::kHelp;
      state_.first_line = 0;
    } else if (letter == ' ') {
      scroll(page_);
    } else if (state_.page == Page::kDetails && letter == 'k') {
      ask_signal();
    } else if (state_.page == Page::kDetails && letter == 'l') {
      ask_limit();
    }
    return {};
  }

  void open_details() {
    const ProcessRow* row = selected();
    if (row == nullptr) return;
    state_.selected_key = row->key;
    state_.page = Page::kDetails;
    state_.first_line = 0;
  }

  void ask(Prompt prompt, const std::string& input) {
    state_.prompt = prompt;
    state_.input = input;
  }

  void ask_signal() {
    const ProcessRow* row = selected();
    if (row == nullptr) return;
    if (!row->alive) return say("It has ended");
    if (!row->can_signal) return say("Its pid is not known here: it runs in another PID namespace");
    state_.target_key = row->key;
    ask(Prompt::kSignal, "");
  }

  void ask_limit() {
    const ProcessRow* row = selected();
    if (row == nullptr) return;
    if (!row->alive) return say("It has ended");
    if (!row->can_limit)
      return say("Its cap can be changed only by its owner and root, and only if its gpucap is recent enough");
    state_.target_key = row->key;
    ask(Prompt::kLimit, "");
  }

  // Types into state_.input; Enter and Escape are the prompt's own.
  void on_typing(const Key& key) {
    if (key.code == Key::Code::kEscape) {
      if (state_.prompt == Prompt::kFilter) state_.filter.clear();
      state_.prompt = Prompt::kNone;
      return;
    }
    if (key.code == Key::Code::kEnter) return entered();
    if (key.code == Key::Code::kFunction && key.function == 3 && state_.prompt == Prompt::kSearch)
      return search_next(true);
    if (state_.prompt == Prompt::kSearch && moves(key)) return;
    if (key.code == Key::Code::kBackspace) {
      while (!state_.input.empty() && (static_cast<unsigned char>(state_.input.back()) & 0xc0) == 0x80)
        state_.input.pop_back();
      if (!state_.input.empty()) state_.input.pop_back();
    } else if (key.code == Key::Code::kText && key.text == "\x15") {
      state_.input.clear();
    } else if (key.code == Key::Code::kText && !key.text.empty() && static_cast<unsigned char>(key.text[0]) >= 32) {
      if (state_.input.size() + key.text.size() <= kMostTyped) state_.input += key.text;
    } else {
      return;
    }
    if (state_.prompt == Prompt::kFilter) state_.filter = state_.input;
    if (state_.prompt == Prompt::kSearch) {
      state_.search = state_.input;
      search_next(false);
    }
  }

  void entered() {
    const Prompt was = state_.prompt;
    state_.prompt = Prompt::kNone;
    if (was == Prompt::kSignal) {
      state_.signal = state_.input.empty() ? 15 : signal_number(state_.input);
      if (state_.signal == 0) return say("No such signal: " + state_.input);
      state_.prompt = Prompt::kConfirmSignal;
    } else if (was == Prompt::kLimit && !state_.input.empty()) {
      if (parse_limit()) state_.prompt = Prompt::kConfirmLimit;
    }
  }

  bool parse_limit() {
    const ProcessRow* row = row_of(state_.target_key);
    if (row == nullptr) {
      say("It has ended");
      return false;
    }
    if (state_.input == "none") {
      state_.limit_bytes = core::kNoLimit;
      return true;
    }
    core::LimitValue value;
    const core::SizeError error = core::parse_limit_value(state_.input, &value);
    if (error != core::SizeError::kNone) {
      say("'" + state_.input + "' is not a limit: " + core::to_text(error));
      return false;
    }
    state_.limit_bytes = value.resolve(row->physical_bytes);
    return true;
  }

  Command on_question(const Key& key) {
    const Prompt was = state_.prompt;
    state_.prompt = Prompt::kNone;
    const bool yes = key.code == Key::Code::kText && (key.text == "y" || key.text == "Y");
    if (!yes) {
      say("Nothing was done", false);
      return {};
    }
    if (was == Prompt::kConfirmSignal) return {Command::Kind::kSendSignal, state_.target_key, state_.signal, 0};
    return {Command::Kind::kSetLimit, state_.target_key, 0, state_.limit_bytes};
  }

  // From the selection on, around the end; `beyond`: not the selection itself.
  void search_next(bool beyond) {
    if (state_.search.empty()) return;
    const std::vector<ArrangedRow> rows = arrange(model_, state_);
    const size_t from = selected_position(rows, model_, state_.selected_key).value_or(0) + (beyond ? 1 : 0);
    for (size_t i = 0; i < rows.size(); ++i) {
      const ArrangedRow& row = rows[(from + i) % rows.size()];
      if (!row.index || !matches(model_.rows[*row.index], state_.search)) continue;
      state_.selected_key = model_.rows[*row.index].key;
      return;
    }
    // While the question is open the last line is its own.
    if (state_.prompt == Prompt::kNone) say("Not found: " + state_.search);
  }

  const ScreenModel& model_;
  std::ptrdiff_t page_;
  ViewState& state_;
};

}  // namespace

Command handle_key(const Key& key, const ScreenModel& model, size_t page, ViewState* state) {
  return Handler(model, page, state).handle(key);
}

}  // namespace gpucap::tools
