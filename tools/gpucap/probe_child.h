// Asks a program's own loader whether the library would be loaded into it, without running the program.
#pragma once

#include <string>
#include <vector>

namespace gpucap::tools {

struct ProbeAnswer {
  bool loaded = false;
  std::string reason;  // if not
};

// Runs `loader` with `arguments` (the program first) in its tracing mode, under the present environment, in which
// LD_PRELOAD names `library`. Naming the loader itself makes sure that the program cannot start.
ProbeAnswer probe_loading(const std::string& loader, const std::vector<std::string>& arguments,
                          const std::string& library);

// What a loader's tracing output says about the library. Pure.
ProbeAnswer judge_trace(const std::string& output, const std::string& errors, const std::string& library);

}  // namespace gpucap::tools
