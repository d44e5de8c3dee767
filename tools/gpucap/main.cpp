// gpucap: reads its arguments and hands over to one of its commands. What is wrong with them is told in one line, and
// exits with 125, which no option can change.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "tools/common/help.h"
#include "tools/common/nearest.h"
#include "tools/gpucap/check_command.h"
#include "tools/gpucap/refuse.h"
#include "tools/gpucap/run_command.h"
#include "tools/gpucap/set_command.h"

namespace {

using namespace gpucap::tools;

constexpr const char* kExamples =
    "Examples:\n"
    "  gpucap run --limit 4G -- python train.py\n"
    "  gpucap set -p 4711 --limit 6G\n"
    "  gpucap check -p 4711\n"
    "\n"
    "Exit status of run: the command's; 125 if gpucap refuses to start it, 126 if it\n"
    "cannot be executed, 127 if it is not found. Of set and check: 0, or 1 with the\n"
    "reason; 125 if the options are wrong. More: gpucap COMMAND --help";

constexpr const char* kRunExamples =
    "Examples:\n"
    "  gpucap run --limit 4G -- python train.py\n"
    "  gpucap run --group team-a --group-limit 12G --on-limit wait:5m -- ./work\n"
    "  gpucap run --wait 8G --gpu any --limit 8G -- python train.py";

constexpr const char* kSetExamples =
    "Examples:\n"
    "  gpucap set -p 4711 --limit 6G\n"
    "  gpucap set -p 4711 --limit none --gpu 1      watched only, on GPU 1\n"
    "  gpucap set --group team-a --limit 12G";

constexpr const char* kCheckExamples =
    "Examples:\n"
    "  gpucap check                  could a program be capped here, and by what?\n"
    "  gpucap check -p 4711          is this one capped, and by what?\n"
    "  gpucap check --policy new.conf";

CLI::App* add_run(CLI::App* app, RunOptions* options) {
  CLI::App* run = app->add_subcommand("run", "Starts a command: gpucap run [OPTIONS] -- COMMAND...");
  run->footer(kRunExamples);
  run->prefix_command();
  // An empty value is a slip in somebody's script, never a wish for the default.
  const CLI::Validator not_empty([](const std::string& value) { return std::string(value.empty() ? "is empty" : ""); },
                                 "");
  const auto option = [&](const char* name, std::string* value, const char* type, const char* what) {
    return run->add_option(name, *value, what)->type_name(type)->check(not_empty);
  };
  run->add_option("--limit", options->limit, "Cap: 4G, 50%, 0=4G,1=8G, ...")->type_name("LIMIT");
  option("--group", &options->group, "NAME", "Budget shared with others of that name");
  option("--group-limit", &options->group_limit, "LIMIT", "What all of the group may have together");
  option("--on-limit", &options->on_limit, "WHAT", "deny, wait, wait:30s or observe");
  option("--wait", &options->wait, "SIZE", "Start only once so much is free");
  option("--wait-timeout", &options->wait_timeout, "TIME", "Give up after that: 30s, 5m, 2h");
  option("--gpu", &options->gpu, "GPU", "Show only that one: any, a number, a UUID");
  option("--log", &options->log, "LEVEL", "off, error, warn, info, debug")
      ->check(CLI::IsMember({"off", "error", "warn", "info", "debug"}).description(""));
  option("--log-file", &options->log_file, "FILE", "Where the log goes; %p is the pid");
  option("--dir", &options->directory, "DIR", "Where the figures lie (GPUCAP_DIR)");
  run->add_flag("--json", options->json, "The summary as JSON");
  option("--summary", &options->summary_file, "FILE", "Write the JSON summary there as well");
  run->add_flag("-q,--quiet", options->quiet, "Nothing on stderr but errors");
  return run;
}

// Says nothing in the help, where CLI11's own would.
CLI::Validator positive() { return CLI::Validator(CLI::PositiveNumber).description(""); }

CLI::App* add_set(CLI::App* app, SetOptions* options) {
  CLI::App* set = app->add_subcommand("set", "Changes a limit while the program runs");
  set->footer(kSetExamples);
  set->add_option("-p,--pid", options->pid, "The process")->type_name("PID")->check(positive());
  set->add_option("--group", options->group, "Or the group")->type_name("NAME");
  set->add_option("--limit", options->limit, "The new limit: 4G, 50%, 0=4G,1=8G, none")->type_name("LIMIT")->required();
  set->add_option("--gpu", options->gpu, "On this one alone: a number or a UUID")->type_name("GPU");
  set->add_option("--dir", options->directory, "Where the figures lie (GPUCAP_DIR)")->type_name("DIR");
  return set;
}

CLI::App* add_check(CLI::App* app, CheckOptions* options) {
  CLI::App* check = app->add_subcommand("check", "Says whether gpucap works here, or in a process");
  check->footer(kCheckExamples);
  check->add_option("-p,--pid", options->pid, "Look at this process")->type_name("PID")->check(positive());
  check->add_option("--dir", options->directory, "Where the figures lie (GPUCAP_DIR)")->type_name("DIR");
  check->add_option("--policy", options->policy_path, "Judge this policy file")->type_name("FILE");
  check->add_flag("--json", options->json, "As JSON");
  return check;
}

int run(std::vector<std::string> words) {
  RunOptions run_options;
  SetOptions set_options;
  CheckOptions check_options;
  CLI::App app{"Caps the GPU memory of any CUDA program."};
  app.name("gpucap");
  app.footer(kExamples);
  app.formatter(std::make_shared<CompactHelp>());
  app.set_help_flag("-h,--help", "This text");
  app.set_version_flag("-V,--version", "gpucap " GPUCAP_VERSION);
  app.require_subcommand(1);
  const CLI::App* runner = add_run(&app, &run_options);
  const CLI::App* setter = add_set(&app, &set_options);
  const CLI::App* checker = add_check(&app, &check_options);
  app.add_subcommand("version", "Prints the version");

  // The command's own words are not to be looked at, whatever they are.
  const auto dashes = std::find(words.begin(), words.end(), "--");
  const std::vector<std::string> after(dashes == words.end() ? dashes : dashes + 1, words.end());
  std::vector<std::string> ours(words.begin(), dashes);
  std::reverse(ours.begin(), ours.end());  // as CLI11 takes them
  try {
    app.parse(ours);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return refuse({kExitRefused, with_suggestion(app, error)});
  }
  if (*setter) return set_command(set_options);
  if (*checker) return check_command(check_options);
  if (!*runner) {
    std::cout << "gpucap " GPUCAP_VERSION "\n";
    return 0;
  }
  std::vector<std::string>& command = run_options.command;
  command = runner->remaining();
  // "gpucap run git -- file": the command has begun before the dashes, which are then its own.
  if (!command.empty() && dashes != words.end()) command.emplace_back("--");
  command.insert(command.end(), after.begin(), after.end());
  if (command.empty()) {
    return refuse({kExitRefused, "run: no command was given (gpucap run --limit 4G -- COMMAND)"});
  }
  if (command[0].size() > 1 && command[0][0] == '-' && after != command) {
    const std::string meant = nearest_name(app, command[0]);
    return refuse({kExitRefused, "run: unknown option " + command[0] +
                                     (meant.empty() ? " (see gpucap run --help)" : "; did you mean " + meant + "?")});
  }
  run_options.limit_given = runner->count("--limit") > 0;
  return run_command(run_options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << "gpucap: " << error.what() << '\n';
    return kExitRefused;
  }
}
