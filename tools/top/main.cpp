// gpucap-top: reads its arguments and hands over to show_table() or show_events().
#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <vector>

#include "tools/common/help.h"
#include "tools/common/nearest.h"
#include "tools/top/query.h"
#include "tools/top/show_events.h"
#include "tools/top/totals.h"
#include "tools/top/watch.h"

namespace {

using namespace gpucap::tools;

// What CLI11 cannot know to be wrong; told in one line, like its own errors.
struct UsageError {
  std::string text;
};

constexpr const char* kExamples =
    "Examples:\n"
    "  gpucap-top                                    the screen; ? shows its keys\n"
    "  gpucap-top --query pid,used,limit,peak -l 1   figures for scripts, each second\n"
    "  gpucap-top events -f --operation refuse       what is refused, as it happens";

constexpr const char* kEventsExamples =
    "Examples:\n"
    "  gpucap-top events -f                          the log, as it grows\n"
    "  gpucap-top events -c -p 4711                  its calls, counted by function\n"
    "  gpucap-top events --api '*Async' --size '>=1G' --csv";

struct TopWords {
  std::vector<int> pids;
  std::string query, format;
  bool list_fields = false;
};

void declare_top(CLI::App* app, TopOptions* top, TopWords* words) {
  app->add_flag("--once", top->once, "The table, once");
  app->add_flag("--json", top->json, "JSON: one object, with -l a line for each look");
  app->add_flag("--csv", top->csv, "Every field, separated by commas, in bytes");
  app->add_option("--query", words->query, "These fields only, as nvidia-smi prints them")->type_name("FIELDS");
  app->add_option("--format", words->format, "Of --query: csv[,noheader][,nounits]")->type_name("FORMAT");
  app->add_flag("--query-fields,--help-query", words->list_fields, "List the fields, with their units");
  app->add_option("--by", top->by, "Sums by user, group or command")->type_name("WHAT");
  app->add_flag("--all", top->all, "The dead too, in JSON, --csv and --query");
  app->add_option("--keep", top->keep_seconds, "List the dead for so long; 0: never (600)")
      ->type_name("SECONDS")
      ->check(CLI::Range(uint64_t{0}, kKeepDeadSeconds));
  app->add_option("-l,--loop", top->interval_seconds, "Look again so often")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 3600.0));
  app->add_option("-p,--pid", words->pids, "This process only; may be given again")
      ->type_name("PID")
      ->expected(1)
      ->take_all()
      ->check(CLI::PositiveNumber);
  app->add_option("--dir", top->directory, "Instead of GPUCAP_DIR or /dev/shm/gpucap-<uid>")->type_name("DIR");
  app->add_flag("--ascii", top->ascii, "Draw the screen with ASCII alone");
  app->get_option("--once")->excludes(app->get_option("--loop"));
  app->get_option("--format")->needs(app->get_option("--query"));
  for (const char* one : {"--once", "--json", "--csv"}) app->get_option("--query")->excludes(app->get_option(one));
  for (const char* one : {"--once", "--json"}) app->get_option("--csv")->excludes(app->get_option(one));
  app->get_option("--by")->excludes(app->get_option("--query"));
}

void read_format(const std::string& format, TopOptions* top) {
  top->units = true;
  bool is_csv = format.empty();
  for (std::string_view rest = format; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string word(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    is_csv = is_csv || word == "csv";
    if (word == "noheader") top->header = false;
    if (word == "nounits") top->units = false;
    if (word == "csv" || word == "noheader" || word == "nounits") continue;
    const std::string meant = nearest(word, {"csv", "noheader", "nounits"});
    throw UsageError{"--format: unknown word '" + gpucap::wire::clean_text(word) + "'" +
                     (meant.empty() ? " (csv, noheader or nounits)" : "; did you mean " + meant + "?")};
  }
  if (!is_csv) throw UsageError{"--format must contain csv"};
}

void finish_top(const CLI::App& app, const TopWords& words, TopOptions* top) {
  top->pids.insert(words.pids.begin(), words.pids.end());
  if (app.get_option("--query")->count() != 0) {
    std::vector<const QueryField*> fields;
    std::string error;
    if (!find_fields(words.query, &fields, &error)) throw UsageError{"--query: " + error};
    top->query = {words.query};
    read_format(words.format, top);
  }
  if (!top->by.empty() && !totals_by(top->by)) {
    const std::string meant = nearest(top->by, {"user", "group", "command"});
    throw UsageError{"--by: unknown word '" + gpucap::wire::clean_text(top->by) + "'" +
                     (meant.empty() ? " (user, group or command)" : "; did you mean " + meant + "?")};
  }
  const bool for_scripts = top->json || top->csv || !top->query.empty();
  if (top->all && !for_scripts) throw UsageError{"--all goes with --json, --csv or --query; the table has --keep"};
  if (top->all && app.get_option("--keep")->count() != 0) throw UsageError{"--all and --keep exclude each other"};
  // Scripts have always been told of the living, and of others only when they ask.
  if (for_scripts && !top->all && app.get_option("--keep")->count() == 0) top->keep_seconds = 0;
  if (top->all) top->keep_seconds = UINT64_MAX;
}

struct EventWords {
  std::vector<int> pids;
  std::vector<std::string> sizes, operations, results;
};

void declare_events(CLI::App* log, EventsOptions* events, EventWords* words) {
  const auto list = [log](const char* name, std::vector<std::string>& texts, const char* type, const char* what) {
    log->add_option(name, texts, what)->type_name(type)->expected(1)->take_all();
  };
  log->add_flag("-f,--follow", events->follow, "Go on with what happens next, until Ctrl-C");
  log->add_flag("-c,--count", events->count, "Count by function; with -f at Ctrl-C");
  log->add_flag("--json", events->json, "One JSON object a line");
  log->add_flag("--csv", events->csv, "Separated by commas")->excludes(log->get_option("--json"));
  log->add_option("-p,--pid", words->pids, "This process only; may be given again, like all below")
      ->type_name("PID")
      ->expected(1)
      ->take_all()
      ->check(CLI::PositiveNumber);
  list("--gpu", events->filter.gpus, "GPU", "By the process's own number, or a UUID's beginning");
  list("--api", events->filter.apis, "GLOB", "By function: 'cuMemAlloc*'");
  list("--size", words->sizes, "SIZE", "By bytes: '>=64M', '<=1G'");
  list("--result", words->results, "RESULT", "success, error, OUT_OF_MEMORY, 2, ...");
  list("--operation", words->operations, "WORD", "charge, release, refuse, fail, driver, limit, ...");
  log->add_option("--dir", events->directory, "Where to look")->type_name("DIR");
}

void finish_events(const EventWords& words, const TopOptions& top, const TopWords& before, EventsOptions* events) {
  // Options before the word `events` count too, where they mean the same.
  if (top.once || top.all || top.interval_seconds > 0 || !before.query.empty() || !top.by.empty()) {
    throw UsageError{"events: of the options before it only --json, --csv, --pid and --dir can be used"};
  }
  events->pids.insert(before.pids.begin(), before.pids.end());
  events->pids.insert(words.pids.begin(), words.pids.end());
  if (events->directory.empty()) events->directory = top.directory;
  events->json = events->json || top.json;
  events->csv = events->csv || top.csv;
  if (events->json && events->csv) throw UsageError{"--json and --csv exclude each other"};
  std::string error;
  if (!events->filter.add_sizes(words.sizes, &error) || !events->filter.add_operations(words.operations, &error) ||
      !events->filter.add_results(words.results, &error)) {
    throw UsageError{error};
  }
}

int refuse(const std::string& what) {
  std::cerr << "gpucap-top: " << what << '\n';
  return kExitUsage;
}

int run(int argc, char** argv) {
  TopOptions top;
  TopWords words;
  EventsOptions events;
  EventWords event_words;

  CLI::App app{"Shows which process uses how much GPU memory of which cap."};
  app.name("gpucap-top");
  app.formatter(std::make_shared<CompactHelp>());
  app.footer(kExamples);
  app.set_help_flag("-h,--help", "This text");
  app.set_version_flag("-V,--version", "gpucap-top " GPUCAP_VERSION, "The version");
  declare_top(&app, &top, &words);
  CLI::App* log = app.add_subcommand("events", "The event log, of ended processes too");
  log->footer(kEventsExamples);
  declare_events(log, &events, &event_words);
  app.require_subcommand(0, 1);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return refuse(with_suggestion(app, error) + " (see --help)");
  }
  if (words.list_fields) {
    std::cout << query_fields_help() << std::flush;
    return std::cout ? kExitOk : kExitCannotWrite;
  }
  try {
    if (*log) {
      finish_events(event_words, top, words, &events);
      return show_events(events);
    }
    finish_top(app, words, &top);
  } catch (const UsageError& error) {
    return refuse(error.text);
  }
  return show_table(top);
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
