// Starts a program with a changed environment, collects what it prints, and can look at it from outside while it waits.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace gpucap::e2e {

using Environment = std::map<std::string, std::string>;

class Child {
 public:
  Child(const std::vector<std::string>& command, const Environment& environment) {
    int to[2], from[2], errors[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0 || pipe2(errors, O_CLOEXEC) != 0)
      throw std::runtime_error("pipe2");
    pid = fork();
    if (pid == 0) {
      dup2(to[0], 0);
      dup2(from[1], 1);
      dup2(errors[1], 2);
      for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
      std::vector<char*> argv;
      for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
      argv.push_back(nullptr);
      execvp(argv[0], argv.data());
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    close(errors[1]);
    input_ = to[1];
    outputs_[0] = from[0];
    outputs_[1] = errors[0];
  }
  ~Child() {
    if (!finished_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    if (input_ >= 0) close(input_);
    close(outputs_[0]);
    close(outputs_[1]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Reads until a line of stdout starts with `mark`; false if the program ended or half a minute went by first.
  bool wait_for(const std::string& mark) {
    while (out.rfind(mark, 0) != 0 && out.find("\n" + mark) == std::string::npos)
      if (!read_some()) return false;
    return true;
  }
  void tell(const std::string& text) { static_cast<void>(!write(input_, text.data(), text.size())); }
  void close_input() {
    if (input_ >= 0) close(input_);
    input_ = -1;
  }
  // Takes in what it prints within the time.
  void poll_once(int at_most_ms) { read_some(at_most_ms); }
  // Lets it end; the wait status as waitpid gives it.
  int finish() {
    close_input();
    while (read_some()) {
    }
    int status = 0;
    waitpid(pid, &status, 0);
    finished_ = true;
    return status;
  }

  pid_t pid = -1;
  std::string out, err;

 private:
  bool read_some(int at_most_ms = 1000) {
    if (std::chrono::steady_clock::now() > deadline_) return false;
    pollfd ready[2] = {{outputs_[0], POLLIN, 0}, {outputs_[1], POLLIN, 0}};
    for (int i = 0; i < 2; ++i)
      if (ended_[i]) ready[i].fd = -1;
    if (ended_[0] && ended_[1]) return false;
    poll(ready, 2, at_most_ms);
    for (int i = 0; i < 2; ++i) {
      if (ended_[i] || ready[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t n = read(outputs_[i], buffer, sizeof(buffer));
      if (n <= 0) {
        ended_[i] = true;
      } else {
        (i == 0 ? out : err).append(buffer, static_cast<size_t>(n));
      }
    }
    return true;
  }

  int input_ = -1;
  int outputs_[2] = {-1, -1};
  bool ended_[2] = {false, false};
  bool finished_ = false;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::now() + std::chrono::seconds(60);
};

// The value of "name=value" in what a program printed; "" if there is none.
inline std::string value_of(const std::string& output, const std::string& name) {
  const std::string key = name + "=";
  size_t at = output.rfind(key, 0) == 0 ? 0 : output.find("\n" + key);
  if (at == std::string::npos) return "";
  if (output[at] == '\n') ++at;
  const size_t end = output.find('\n', at);
  return output.substr(at + key.size(), end - at - key.size());
}

}  // namespace gpucap::e2e
