// The terminal by ncurses: see curses_terminal.h.
#include "tools/top/curses_terminal.h"

#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstring>
#include <string>

// ncurses marks its functions as such only in newer versions; wide characters must be asked for.
#ifndef NCURSES_WIDECHAR
#define NCURSES_WIDECHAR 1
#endif
#include <ncurses.h>

namespace gpucap::tools {
namespace {

constexpr int kEscapeDelayMs = 100;  // over a slow line the parts of one key come apart

constexpr short kNoColour = -1;

struct Look {
  short colour = kNoColour;
  attr_t attributes = A_NORMAL;
};

// Sixteen colours are enough; each look also reads without any.
Look look_of(Style style) {
  switch (style) {
    case Style::kDim:
      return {kNoColour, A_DIM};
    case Style::kStrong:
      return {kNoColour, A_BOLD};
    case Style::kHeader:
      return {COLOR_CYAN, A_REVERSE};
    case Style::kSelected:
      return {kNoColour, A_REVERSE | A_BOLD};
    case Style::kData:
      return {COLOR_GREEN, A_NORMAL};
    case Style::kDriver:
      return {COLOR_BLUE, A_NORMAL};
    case Style::kOthers:
      return {COLOR_MAGENTA, A_NORMAL};
    case Style::kWarning:
      return {COLOR_YELLOW, A_BOLD};
    case Style::kTrouble:
      return {COLOR_RED, A_BOLD};
    case Style::kKey:
      return {COLOR_CYAN, A_BOLD};
    case Style::kPlain:
    case Style::kCount:
      break;
  }
  return {};
}

std::string utf8(wint_t c) {
  std::string text;
  const auto put = [&](unsigned value) { text += static_cast<char>(value); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6);
    put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3f));
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  }
  return text;
}

std::optional<Key> special_key(wint_t code) {
  if (code >= KEY_F(0) && code <= KEY_F(12)) return Key{Key::Code::kFunction, "", static_cast<int>(code - KEY_F(0))};
  switch (code) {
    case KEY_UP:
      return Key{Key::Code::kUp, "", 0};
    case KEY_DOWN:
      return Key{Key::Code::kDown, "", 0};
    case KEY_PPAGE:
      return Key{Key::Code::kPageUp, "", 0};
    case KEY_NPAGE:
      return Key{Key::Code::kPageDown, "", 0};
    case KEY_HOME:
      return Key{Key::Code::kHome, "", 0};
    case KEY_END:
      return Key{Key::Code::kEnd, "", 0};
    case KEY_BACKSPACE:
      return Key{Key::Code::kBackspace, "", 0};
    case KEY_ENTER:
      return Key{Key::Code::kEnter, "", 0};
    default:
      return std::nullopt;
  }
}

}  // namespace

struct CursesTerminal::Handle {
  SCREEN* screen;
  bool colours;
};

bool terminal_takes_unicode() {
  std::setlocale(LC_CTYPE, "");
  const char* codes = nl_langinfo(CODESET);
  return codes != nullptr && std::strcmp(codes, "UTF-8") == 0;
}

CursesTerminal::CursesTerminal(bool colours) {
  if (!terminal_is_known()) return;
  SCREEN* screen = newterm(nullptr, stdout, stdin);
  if (screen == nullptr) return;
  screen_ = new Handle{screen, false};
  set_escdelay(kEscapeDelayMs);
  cbreak();
  noecho();
  nonl();
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  leaveok(stdscr, FALSE);
  curs_set(0);
  if (!colours || !has_colors()) return;
  start_color();
  use_default_colors();
  for (short i = 0; i < static_cast<short>(Style::kCount); ++i) {
    init_pair(static_cast<short>(i + 1), look_of(static_cast<Style>(i)).colour, kNoColour);
  }
  screen_->colours = true;
}

CursesTerminal::~CursesTerminal() {
  if (screen_ == nullptr) return;
  leave();
  delscreen(screen_->screen);
  delete screen_;
}

void CursesTerminal::leave() {
  if (screen_ == nullptr || left_) return;
  left_ = true;
  curs_set(1);
  endwin();
}

void CursesTerminal::resume() {
  if (screen_ == nullptr || !left_) return;
  left_ = false;
  follow_size();
  clearok(stdscr, TRUE);
  refresh();
  curs_set(0);
}

void CursesTerminal::follow_size() {
  winsize window = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 && window.ws_row > 0) {
    resizeterm(window.ws_row, window.ws_col);
  }
}

void CursesTerminal::forget() { clearok(stdscr, TRUE); }

ScreenSize CursesTerminal::size() const {
  const int columns = getmaxx(stdscr);
  const int lines = getmaxy(stdscr);
  return {columns > 0 ? static_cast<size_t>(columns) : 1, lines > 0 ? static_cast<size_t>(lines) : 1};
}

void CursesTerminal::draw(const Frame& frame) {
  erase();
  int at = 0;
  for (const StyledLine& line : frame.lines) {
    move(at++, 0);
    for (const Span& span : line) {
      const Look look = look_of(span.style);
      const short pair =
          screen_->colours && look.colour != kNoColour ? static_cast<short>(static_cast<int>(span.style) + 1) : 0;
      attr_set(look.attributes, pair, nullptr);
      // Writing the last column of the last line fails after it was written: nothing to be done about it.
      addstr(span.text.c_str());
    }
  }
  attr_set(A_NORMAL, 0, nullptr);
  if (frame.cursor_column >= 0 && at > 0) {
    move(at - 1, frame.cursor_column);
    curs_set(1);
  } else {
    curs_set(0);
  }
  refresh();
}

std::optional<Key> CursesTerminal::take_key() {
  for (;;) {
    wint_t code = 0;
    const int kind = get_wch(&code);
    if (kind == ERR) return std::nullopt;
    if (kind == KEY_CODE_YES) {
      if (const std::optional<Key> key = special_key(code)) return key;
      continue;
    }
    if (code == '\r' || code == '\n') return Key{Key::Code::kEnter, "", 0};
    if (code == 27) return Key{Key::Code::kEscape, "", 0};
    if (code == 127 || code == 8) return Key{Key::Code::kBackspace, "", 0};
    return Key{Key::Code::kText, utf8(code), 0};
  }
}

}  // namespace gpucap::tools
