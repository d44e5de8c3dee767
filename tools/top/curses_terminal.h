// The terminal, by ncurses, which sends only what changed. The one file that includes its header is the .cpp; what is
// drawn comes as a Frame. Puts everything back when it is left, also by an exception.
#pragma once

#include <cstddef>
#include <optional>

#include "tools/top/keys_handler.h"
#include "tools/top/view_frame.h"

namespace gpucap::tools {

class CursesTerminal {
 public:
  // ready() is false if ncurses does not know the terminal.
  explicit CursesTerminal(bool colours);
  ~CursesTerminal();
  CursesTerminal(const CursesTerminal&) = delete;
  CursesTerminal& operator=(const CursesTerminal&) = delete;

  [[nodiscard]] bool ready() const { return screen_ != nullptr; }
  void draw(const Frame& frame);
  // A key that is there already; none if there is none (half of an escape sequence is waited for, a tenth of a second).
  std::optional<Key> take_key();
  void leave();   // for a while: the shell has the terminal
  void resume();  // and back
  void follow_size();
  // Sends everything anew at the next draw.
  void forget();
  [[nodiscard]] ScreenSize size() const;

 private:
  struct Handle;
  Handle* screen_ = nullptr;
  bool left_ = false;
};

bool terminal_is_known();  // by its TERM

// Whether text beyond ASCII can be shown: by the locale, which this sets for characters alone.
bool terminal_takes_unicode();

}  // namespace gpucap::tools
