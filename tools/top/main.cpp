// gpucap-top: reads its arguments and hands over to show_table() or show_events().
#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <vector>

#include "tools/top/show_events.h"
#include "tools/top/watch.h"

namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  gpucap-top                      the table, every second, until q\n"
    "  gpucap-top --json -l 5 -p 4711  a line of JSON every five seconds\n"
    "  gpucap-top events -f            the log of every process, as it grows\n"
    "\n"
    "Exit status: 0 fine, 1 no such process (-p), 2 usage, 3 directory cannot be read, 4 output cannot be written";

int run(int argc, char** argv) {
  using namespace gpucap::tools;
  TopOptions top;
  EventsOptions events;
  std::vector<int> pids;
  std::vector<int> event_pids;

  CLI::App app{"Shows which process uses how much GPU memory of which cap."};
  app.name("gpucap-top");
  app.footer(kExamples);
  app.set_version_flag("-V,--version", "gpucap-top " GPUCAP_VERSION);
  app.add_flag("--once", top.once, "Print the table once");
  app.add_flag("--json", top.json, "Print JSON: see docs/gpucap-top.md");
  app.add_flag("--all", top.all, "With --json: dead processes too");
  auto* interval = app.add_option("-l,--loop", top.interval_seconds, "Look again every SECONDS")->type_name("SECONDS");
  interval->check(CLI::Range(0.1, 3600.0));
  app.get_option("--once")->excludes(interval);
  app.get_option("--all")->needs(app.get_option("--json"));
  app.add_option("-p,--pid", pids, "This process only; may be given again")
      ->type_name("PID")
      ->expected(1)
      ->take_all()
      ->check(CLI::PositiveNumber);
  app.add_option("--dir", top.directory, "Where to look instead of GPUCAP_DIR or /dev/shm/gpucap-<uid>")
      ->type_name("DIR");

  CLI::App* log = app.add_subcommand("events", "Prints the event log, of ended processes too");
  log->add_flag("-f,--follow", events.follow, "Go on with what happens next, until Ctrl-C");
  log->add_flag("--json", events.json, "One JSON object a line");
  log->add_option("-p,--pid", event_pids, "This process only; may be given again")
      ->type_name("PID")
      ->expected(1)
      ->take_all()
      ->check(CLI::PositiveNumber);
  log->add_option("--dir", events.directory, "Where to look")->type_name("DIR");
  app.require_subcommand(0, 1);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  if (!*log) {
    top.pids.insert(pids.begin(), pids.end());
    return show_table(top);
  }
  // Options before the word `events` count too.
  events.pids.insert(pids.begin(), pids.end());
  events.pids.insert(event_pids.begin(), event_pids.end());
  if (events.directory.empty()) events.directory = top.directory;
  events.json = events.json || top.json;
  return show_events(events);
}

}  // namespace

int main(int argc, char** argv) {
  // A reader that goes away ends us quietly, also where the parent had the signal ignored.
  std::signal(SIGPIPE, SIG_DFL);
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "gpucap-top: " << error.what() << '\n';
    return gpucap::tools::kExitNoDirectory;
  }
}
