// The screen where there is one, else print: see watch.h.
#include "tools/top/watch.h"

#include "tools/top/print.h"
#include "tools/top/show_screen.h"

namespace gpucap::tools {

std::string empty_table_advice(const Places& places) {
  std::string where;
  for (const std::string& path : places.paths) where += (where.empty() ? "" : ", ") + wire::clean_text(path);
  return "No process uses CUDA under gpucap (looked in " + where +
         "). Start one with: gpucap run --limit 4G -- COMMAND";
}

int show_table(const TopOptions& options) {
  const bool for_scripts = options.once || options.json || options.csv || !options.query.empty() || !options.by.empty();
  return for_scripts || !on_a_terminal() ? print_scans(options) : show_screen(options);
}

}  // namespace gpucap::tools
