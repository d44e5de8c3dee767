// The terminal: see screen.h. ECMA-48 sequences that every terminal of the last decades knows.
#include "tools/top/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace gpucap::tools {
namespace {

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";  // other screen, no cursor, no wrapping
constexpr std::string_view kLeave = "\x1b[?7h\x1b[?25h\x1b[?1049l";

bool write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = write(STDOUT_FILENO, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  return true;
}

}  // namespace

void Screen::enter() {
  if (entered_) return;
  entered_ = true;
  has_mode_ = tcgetattr(STDIN_FILENO, &mode_before_) == 0;
  if (has_mode_) {
    termios mode = mode_before_;
    mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    mode.c_cc[VMIN] = 1;
    mode.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &mode);
  }
  write_all(kEnter);
}

void Screen::leave() {
  if (!entered_) return;
  entered_ = false;
  write_all(kLeave);
  if (has_mode_) tcsetattr(STDIN_FILENO, TCSANOW, &mode_before_);
}

bool Screen::draw(const std::vector<std::string>& lines) const {
  std::string text = "\x1b[H";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i != 0) text += "\r\n";
    text += i == 1 ? "\x1b[7m" + lines[i] + "\x1b[0m" : lines[i];
    text += "\x1b[K";
  }
  text += "\x1b[J";
  return write_all(text);
}

ScreenSize Screen::size() {
  winsize window = {};
  ScreenSize size;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 && window.ws_row > 0) {
    size = {window.ws_col, window.ws_row};
  }
  return size;
}

}  // namespace gpucap::tools
