// The loader's tracing mode, the one behind ldd: see probe_child.h.
#include "tools/gpucap/probe_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <sstream>

#include "wire/files.h"
#include "wire/segment_reader.h"

namespace gpucap::tools {
namespace {

constexpr uint64_t kPatienceNs = UINT64_C(10000000000);
constexpr size_t kMostOutput = size_t{1} << 20;

[[noreturn]] void become_loader(const std::string& loader, const std::vector<std::string>& arguments, int out,
                                int errors) {
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
  for (const char* variable : {"LD_DEBUG", "LD_DEBUG_OUTPUT", "LD_WARN", "LD_VERBOSE", "LD_AUDIT"}) unsetenv(variable);
  std::vector<char*> words = {const_cast<char*>(loader.c_str())};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  execv(loader.c_str(), words.data());
  _exit(127);
}

// Reads both pipes to their ends. False if that takes too long.
bool read_both(int out, int errors, std::string* output, std::string* error_output) {
  const uint64_t deadline_ns = wire::monotonic_now_ns() + kPatienceNs;
  pollfd waiting[2] = {{out, POLLIN, 0}, {errors, POLLIN, 0}};
  std::string* texts[2] = {output, error_output};
  while (waiting[0].fd >= 0 || waiting[1].fd >= 0) {
    const uint64_t now_ns = wire::monotonic_now_ns();
    if (now_ns >= deadline_ns) return false;
    if (poll(waiting, 2, static_cast<int>((deadline_ns - now_ns) / 1000000) + 1) < 0 && errno != EINTR) return false;
    for (int i = 0; i < 2; ++i) {
      if (waiting[i].fd < 0 || waiting[i].revents == 0) continue;
      std::array<char, 4096> chunk;
      const ssize_t got = read(waiting[i].fd, chunk.data(), chunk.size());
      if (got > 0 && texts[i]->size() < kMostOutput) texts[i]->append(chunk.data(), static_cast<size_t>(got));
      if (got == 0 || (got < 0 && errno != EINTR)) waiting[i].fd = -1;
    }
  }
  return true;
}

bool has(const std::string& line, const std::string& part) { return line.find(part) != std::string::npos; }

}  // namespace

ProbeAnswer judge_trace(const std::string& output, const std::string& errors, const std::string& library) {
  std::istringstream all(output + "\n" + errors);
  bool listed = false;
  for (std::string line; std::getline(all, line);) {
    if (!has(line, library)) continue;
    if (has(line, "cannot be preloaded")) {
      // "ERROR: ld.so: object '...' from LD_PRELOAD cannot be preloaded (why): ignored."
      const size_t open = line.rfind('(');
      const size_t close = line.rfind(')');
      const bool said = open != std::string::npos && close != std::string::npos && open < close;
      return {false, wire::clean_text(said ? line.substr(open + 1, close - open - 1) : line)};
    }
    if (has(line, "required by " + library) || has(line, library + ": ")) return {false, wire::clean_text(line)};
    listed = listed || has(line, library + " (0x");
  }
  if (listed) return {true, ""};
  return {false, "its loader does not load what LD_PRELOAD names"};
}

ProbeAnswer probe_loading(const std::string& loader, const std::vector<std::string>& arguments,
                          const std::string& library) {
  int out[2];
  int errors[2];
  if (pipe2(out, O_CLOEXEC) != 0) return {false, "no pipe for the check"};
  if (pipe2(errors, O_CLOEXEC) != 0) {
    close(out[0]);
    close(out[1]);
    return {false, "no pipe for the check"};
  }
  const pid_t child = fork();
  if (child == 0) become_loader(loader, arguments, out[1], errors[1]);
  close(out[1]);
  close(errors[1]);
  std::string output;
  std::string error_output;
  const bool in_time = child > 0 && read_both(out[0], errors[0], &output, &error_output);
  close(out[0]);
  close(errors[0]);
  if (child < 0) return {false, "no process for the check"};
  if (!in_time) kill(child, SIGKILL);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) return {false, "its loader did not answer in ten seconds"};
  return judge_trace(output, error_output, library);
}

}  // namespace gpucap::tools
