// `gpucap run`: see run_command.h. Everything that can be wrong is told before the command starts.
#include "tools/gpucap/run_command.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <optional>
#include <stdexcept>

#include "tools/common/scan.h"
#include "tools/common/signals.h"
#include "tools/gpucap/library.h"
#include "tools/gpucap/preload_check.h"
#include "tools/gpucap/refuse.h"
#include "tools/gpucap/room.h"
#include "tools/gpucap/run.h"
#include "tools/gpucap/settings.h"
#include "tools/gpucap/summary.h"
#include "wire/files.h"

namespace gpucap::tools {
namespace {

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

void set_variable(const char* variable, const std::string& value) {
  if (!value.empty()) setenv(variable, value.c_str(), 1);
}

// The child may change its directory before it looks: every path is made absolute.
void set_path(const char* variable, const std::string& path) {
  if (!path.empty()) setenv(variable, std::filesystem::absolute(path).c_str(), 1);
}

void prepend_to_preload(const std::string& library) {
  const std::string before = environment("LD_PRELOAD");
  setenv("LD_PRELOAD", (before.empty() ? library : library + ":" + before).c_str(), 1);
}

std::string option_or(const std::string& option, const char* variable) {
  return option.empty() ? environment(variable) : option;
}

Refusal refused(const std::string& reason) { return {kExitRefused, reason}; }

// Judges everything that was given, whether as an option or in the environment. `wish` is empty where nothing is to be
// waited for and no card to be chosen.
std::optional<Refusal> judge(const RunOptions& options, std::optional<RoomWish>* wish) {
  if (disabled_by_environment()) {
    return refused("GPUCAP_DISABLE is set, so nothing would be capped: unset it, or run the command by itself");
  }
  if (options.limit_given && options.limit.find_first_not_of(" \t") == std::string::npos) {
    return refused("--limit is empty: give a size such as 4G, or leave it out to watch only");
  }
  core::LimitRules rules;
  core::OnLimitValue on_limit;
  RoomWish room;
  room.group = option_or(options.group, "GPUCAP_GROUP");
  if (auto problem = problem_of_limit(option_or(options.limit, "GPUCAP_LIMIT"), &rules)) return refused(*problem);
  if (auto problem = problem_of_group(room.group)) return refused(*problem);
  const std::string group_limit = option_or(options.group_limit, "GPUCAP_GROUP_LIMIT");
  if (auto problem = problem_of_limit(group_limit, &room.group_limits)) return refused("--group-limit: " + *problem);
  if (!group_limit.empty() && room.group.empty()) {
    return refused("a group's limit needs the name of the group: add --group NAME");
  }
  if (auto problem = problem_of_on_limit(option_or(options.on_limit, "GPUCAP_ON_LIMIT"), &on_limit)) {
    return refused("--on-limit: " + *problem);
  }
  if (!parse_gpu_name(options.gpu, true, &room.gpu)) {
    return refused("--gpu: '" + options.gpu + "' names no GPU: give any, a number or a UUID");
  }
  if (!options.wait_timeout.empty()) {
    if (options.wait.empty()) return refused("--wait-timeout needs something to wait for: add --wait SIZE");
    if (auto problem = problem_of_time(options.wait_timeout, &room.timeout_ns)) {
      return refused("--wait-timeout: " + *problem);
    }
  }
  if (!options.wait.empty()) {
    core::LimitValue size;
    if (auto problem = problem_of_size(options.wait, &size)) return refused("--wait: " + *problem);
    room.size = size;
  }
  if (room.size || room.gpu.kind != GpuName::Kind::kUnnamed) *wish = std::move(room);
  return std::nullopt;
}

void set_environment(const RunOptions& options, const std::string& run_id, const std::string& library) {
  setenv("GPUCAP_RUN_ID", run_id.c_str(), 1);
  set_variable("GPUCAP_LIMIT", options.limit);
  set_variable("GPUCAP_GROUP", options.group);
  set_variable("GPUCAP_GROUP_LIMIT", options.group_limit);
  set_variable("GPUCAP_ON_LIMIT", options.on_limit);
  set_variable("GPUCAP_LOG", options.log);
  set_path("GPUCAP_LOG_FILE", options.log_file);
  set_path("GPUCAP_DIR", option_or(options.directory, "GPUCAP_DIR"));
  prepend_to_preload(library);
}

// Where processes of this user put their files.
std::string directory_of_programs() {
  const std::string named = environment("GPUCAP_DIR");
  return named.empty() ? "/dev/shm/gpucap-" + std::to_string(geteuid()) : named;
}

std::optional<Refusal> wait_for_room(Room* room, const RunOptions& options, bool choose, uint64_t* waited_ns) {
  Card card;
  const auto say = [&](const std::string& text) {
    if (!options.quiet) std::cerr << "gpucap: waiting for " << wire::clean_text(text) << '\n' << std::flush;
  };
  if (auto refusal = room->wait(directory_of_programs(), say, &card, waited_ns)) return refusal;
  // By UUID: numbers mean another order to CUDA than to NVML on some machines.
  if (choose) setenv("CUDA_VISIBLE_DEVICES", card.uuid.c_str(), 1);
  return std::nullopt;
}

bool write_all(int fd, const std::string& text) {
  for (size_t written = 0; written < text.size();) {
    const ssize_t now = write(fd, text.data() + written, text.size() - written);
    if (now < 0 && errno == EINTR) continue;
    if (now <= 0) return false;
    written += static_cast<size_t>(now);
  }
  return true;
}

void sum_up(const RunOptions& options, const RunSummary& summary, const RunFacts& facts, int summary_fd) {
  if (summary_fd >= 0 && !write_all(summary_fd, summary.json(facts) + "\n")) {
    std::cerr << "gpucap: the summary cannot be written: " << std::strerror(errno) << '\n';
  }
  if (options.quiet) return;
  const std::string text = options.json ? summary.json(facts) : "gpucap: " + summary.text(command_line(facts.command));
  std::cerr << text + "\n" << std::flush;
}

}  // namespace

int run_command(const RunOptions& options) {
  std::optional<RoomWish> wish;
  if (const auto refusal = judge(options, &wish)) return refuse(*refusal);
  std::string path;
  if (const auto refusal = find_command(options.command[0], &path)) return refuse(*refusal);
  std::string tried;
  const std::string library = find_library(&tried);
  if (library.empty()) return refuse(refused("libgpucap.so was not found (tried " + tried + ")"));
  int summary_fd = -1;
  if (!options.summary_file.empty()) {
    summary_fd = open(options.summary_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
    if (summary_fd < 0) return refuse(refused("--summary " + options.summary_file + ": " + std::strerror(errno)));
  }
  RunFacts facts;
  std::optional<Room> room;
  const bool choose = wish && wish->gpu.kind != GpuName::Kind::kUnnamed;
  if (wish) {
    // Before the environment is the program's: where gpucap itself is preloaded, NVML would answer under its limit.
    room.emplace(*wish);
    if (const auto refusal = room->prepare(std::getenv("CUDA_VISIBLE_DEVICES"))) return refuse(*refusal);
  }
  facts.run_id = random_run_id();
  set_environment(options, facts.run_id, library);
  facts.group = environment("GPUCAP_GROUP");
  if (const auto refusal = check_preload(path, options.command, library)) return refuse(*refusal);
  if (room) {
    if (const auto refusal = wait_for_room(&*room, options, choose, &facts.waited_ns)) return refuse(*refusal);
    room.reset();
  }

  RunSummary summary(facts.run_id);
  const auto look = [&] { summary.note(scan(open_directories(places_to_look("")))); };
  facts.started_realtime_ns = wire::realtime_now_ns();
  const uint64_t started_ns = wire::monotonic_now_ns();
  const ChildEnd end = run_to_the_end(path, options.command, look);
  if (!end.started) {
    return refuse({end.error_number == ENOENT ? kExitNotFound : kExitNotExecutable,
                   "'" + options.command[0] + "' cannot be started: " + std::strerror(end.error_number)});
  }
  facts.duration_ns = wire::monotonic_now_ns() - started_ns;
  facts.wait_status = end.wait_status;
  for (const std::string& word : options.command) facts.command.push_back(wire::clean_text(word));
  if (!options.quiet || summary_fd >= 0) look();
  sum_up(options, summary, facts, summary_fd);
  if (WIFSIGNALED(end.wait_status)) die_by_signal(WTERMSIG(end.wait_status));
  return WEXITSTATUS(end.wait_status);
}

}  // namespace gpucap::tools
