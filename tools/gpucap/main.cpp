// gpucap: reads its arguments, sets the environment, checks, runs, sums up. Its own failures exit with 125, 126 or 127,
// which no option can change; everything else is the command's status.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

#include "shim/core/limits.h"
#include "tools/common/signals.h"
#include "tools/gpucap/library.h"
#include "tools/gpucap/preload_check.h"
#include "tools/gpucap/run.h"
#include "tools/gpucap/summary.h"

namespace {

using namespace gpucap::tools;

struct RunOptions {
  std::string limit, log, log_file, directory;
  bool quiet = false;
  std::vector<std::string> command;
};

constexpr const char* kExamples =
    "Examples:\n"
    "  gpucap run --limit 4G -- python train.py\n"
    "  gpucap run --limit 50% --log info -- ./simulate --steps 100\n"
    "  gpucap run -- python train.py        watches only\n"
    "\n"
    "Exit status: the command's; 125 if gpucap refuses to start it, 126 if it cannot be executed, 127 if it is not "
    "found";

std::string random_run_id() {
  std::array<uint8_t, 8> bytes = {};
  const int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (fd < 0 || read(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error("/dev/urandom cannot be read");
  }
  close(fd);
  std::string text;
  for (const uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// The child may change its directory before it looks: every path is made absolute.
void set_path(const char* variable, const std::string& path) {
  if (!path.empty()) setenv(variable, std::filesystem::absolute(path).c_str(), 1);
}

void prepend_to_preload(const std::string& library) {
  const char* before = std::getenv("LD_PRELOAD");
  std::string value = library;
  if (before != nullptr && before[0] != '\0') value += std::string(":") + before;
  setenv("LD_PRELOAD", value.c_str(), 1);
}

// By the library's own rules, which it would apply too late for the person at the keyboard.
std::optional<Refusal> check_limit(const char* text) {
  gpucap::core::LimitRules rules;
  gpucap::core::LimitError error;
  if (text == nullptr || rules.parse(text, &error)) return std::nullopt;
  return Refusal{kExitRefused, "the limit '" + std::string(text) + "' cannot be used: '" + error.part + "' " +
                                   error.reason + "; " + gpucap::core::kLimitHelp};
}

int refuse(const Refusal& refusal) {
  std::cerr << "gpucap: " << gpucap::wire::clean_text(refusal.reason) << '\n';
  return refusal.exit_code;
}

int run_command(const RunOptions& options) {
  const char* disabled = std::getenv("GPUCAP_DISABLE");
  if (disabled != nullptr && disabled[0] != '\0' && std::strcmp(disabled, "0") != 0) {
    return refuse(
        {kExitRefused, "GPUCAP_DISABLE is set, so nothing would be capped: unset it, or run the command by itself"});
  }
  std::string path;
  if (const auto refusal = find_command(options.command[0], &path)) return refuse(*refusal);
  std::string tried;
  const std::string library = find_library(&tried);
  if (library.empty()) return refuse({kExitRefused, "libgpucap.so was not found (tried " + tried + ")"});

  const std::string run_id = random_run_id();
  setenv("GPUCAP_RUN_ID", run_id.c_str(), 1);
  if (!options.limit.empty()) setenv("GPUCAP_LIMIT", options.limit.c_str(), 1);
  if (!options.log.empty()) setenv("GPUCAP_LOG", options.log.c_str(), 1);
  set_path("GPUCAP_LOG_FILE", options.log_file);
  const char* directory = std::getenv("GPUCAP_DIR");
  set_path("GPUCAP_DIR", options.directory.empty() && directory != nullptr ? directory : options.directory);
  prepend_to_preload(library);
  if (const auto refusal = check_preload(path, options.command, library)) return refuse(*refusal);

  RunSummary summary(run_id);
  const auto look = [&] { summary.note(scan(open_directories(places_to_look("")))); };
  const ChildEnd end = run_to_the_end(path, options.command, look);
  if (!end.started) {
    return refuse({end.error_number == ENOENT ? kExitNotFound : kExitNotExecutable,
                   "'" + options.command[0] + "' cannot be started: " + std::strerror(end.error_number)});
  }
  if (!options.quiet) {
    look();
    std::vector<std::string> words;
    for (const std::string& word : options.command) words.push_back(gpucap::wire::clean_text(word));
    std::cerr << "gpucap: " + summary.text(command_line(words)) + "\n" << std::flush;
  }
  if (WIFSIGNALED(end.wait_status)) die_by_signal(WTERMSIG(end.wait_status));
  return WEXITSTATUS(end.wait_status);
}

int run(std::vector<std::string> words) {
  RunOptions options;
  CLI::App app{"Runs a program under a cap on its GPU memory."};
  app.name("gpucap");
  app.footer(kExamples);
  app.set_version_flag("-V,--version", "gpucap " GPUCAP_VERSION);
  app.require_subcommand(1);
  CLI::App* version = app.add_subcommand("version", "Prints the version");
  CLI::App* starter = app.add_subcommand("run", "Starts a command under a cap: gpucap run [options] -- COMMAND...");
  starter->footer(kExamples);
  starter->prefix_command();
  auto* limit = starter->add_option("--limit", options.limit, "The cap: 4G, 50%, 0=4G,1=8G, ... (GPUCAP_LIMIT)")
                    ->type_name("LIMIT");
  starter->add_option("--log", options.log, "off, error, warn, info or debug (GPUCAP_LOG)")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"off", "error", "warn", "info", "debug"}));
  starter->add_option("--log-file", options.log_file, "Where the log goes; %p is the pid (GPUCAP_LOG_FILE)")
      ->type_name("FILE");
  starter->add_option("--dir", options.directory, "Where the shared-memory files live (GPUCAP_DIR)")->type_name("DIR");
  starter->add_flag("-q,--quiet", options.quiet, "No line at the end");

  // The command's own words are not to be looked at, whatever they are.
  const auto dashes = std::find(words.begin(), words.end(), "--");
  const std::vector<std::string> after(dashes == words.end() ? dashes : dashes + 1, words.end());
  std::vector<std::string> ours(words.begin(), dashes);
  std::reverse(ours.begin(), ours.end());  // as CLI11 takes them
  try {
    app.parse(ours);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitRefused;
  }
  if (*version) {
    std::cout << "gpucap " GPUCAP_VERSION "\n";
    return 0;
  }
  options.command = starter->remaining();
  // "gpucap run git -- file": the command has begun before the dashes, which are then its own.
  if (!options.command.empty() && dashes != words.end()) options.command.emplace_back("--");
  options.command.insert(options.command.end(), after.begin(), after.end());
  if (options.command.empty())
    return refuse({kExitRefused, "run: no command was given (gpucap run --limit 4G -- COMMAND)"});
  if (options.command[0].size() > 1 && options.command[0][0] == '-' && after != options.command) {
    return refuse({kExitRefused, "run: unknown option " + options.command[0] + " (see gpucap run --help)"});
  }
  if (limit->count() > 0 && options.limit.find_first_not_of(" \t") == std::string::npos) {
    return refuse({kExitRefused, "--limit is empty: give a size such as 4G, or leave it out to watch only"});
  }
  if (const auto refusal = check_limit(limit->count() > 0 ? options.limit.c_str() : std::getenv("GPUCAP_LIMIT")))
    return refuse(*refusal);
  return run_command(options);
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
