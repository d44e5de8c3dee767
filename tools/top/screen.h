// The terminal as a place to draw: alternate screen, no echo, hidden cursor, and everything put back when it is left.
// Used by the watch loop alone. Knows nothing of what is drawn.
#pragma once

#include <termios.h>

#include <cstddef>
#include <string>
#include <vector>

namespace gpucap::tools {

struct ScreenSize {
  size_t columns = 80;
  size_t lines = 24;
};

class Screen {
 public:
  Screen() { enter(); }
  ~Screen() { leave(); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void enter();
  void leave();
  // Draws over what was there; the second line, the table's header, stands out. False if the terminal is gone.
  bool draw(const std::vector<std::string>& lines) const;
  static ScreenSize size();

 private:
  bool entered_ = false;
  bool has_mode_ = false;
  termios mode_before_ = {};
};

}  // namespace gpucap::tools
