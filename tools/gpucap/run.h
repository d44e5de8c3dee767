// Starts the command and stands in for it: signals go in, the status comes out.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace gpucap::tools {

struct ChildEnd {
  bool started = false;
  int error_number = 0;  // if not started
  int wait_status = 0;   // as waitpid gives it
};

// Runs `path` with `arguments` in this process's group and environment. SIGINT and SIGQUIT from the terminal reach the
// child by themselves; those and SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 and SIGCONT are passed on when a process sent them.
// `now_and_then` is called about once a minute while the child runs.
ChildEnd run_to_the_end(const std::string& path, const std::vector<std::string>& arguments,
                        const std::function<void()>& now_and_then);

}  // namespace gpucap::tools
