// The few lines that gpucap says. Only slow paths speak: refusals, problems, and what debug asks for. A line is one
// write(2); it never blocks, never raises SIGPIPE, never goes to stdout, keeps errno, and can be called from any
// thread.
#pragma once

#include "shim/process/config.h"

namespace gpucap {

// Called once, before the first line. `file` empty means stderr; the text must stay where it is.
void set_up_log(LogLevel level, const char* file);

[[nodiscard]] bool log_enabled(LogLevel level);

__attribute__((format(printf, 2, 3))) void log_line(LogLevel level, const char* format, ...);

// The same, at most a handful in a burst and then one a second; the next line that passes says how many did not.
__attribute__((format(printf, 2, 3))) void log_line_rarely(LogLevel level, const char* format, ...);

}  // namespace gpucap
