// Whether terminfo knows the terminal, asked before ncurses starts, which would keep memory for nothing otherwise. A
// file of its own, since <term.h> makes macros of words like "lines". Declared in curses_terminal.h.
#include <unistd.h>

#include <cstddef>

#include "tools/top/curses_terminal.h"

// After everything else.
#include <ncurses.h>
#include <term.h>

namespace gpucap::tools {

bool terminal_is_known() {
  int error = 0;
  if (setupterm(nullptr, STDOUT_FILENO, &error) != OK) return false;
  del_curterm(cur_term);
  return true;
}

}  // namespace gpucap::tools
