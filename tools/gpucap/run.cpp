// Starting the command and standing in for it: see run.h.
#include "tools/gpucap/run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "tools/common/signals.h"

namespace gpucap::tools {
namespace {

constexpr int kNowAndThenMs = 60000;

[[noreturn]] void become_command(const std::string& path, const std::vector<std::string>& arguments, int report) {
  std::vector<char*> words;
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  execv(path.c_str(), words.data());
  int error_number = errno;
  if (error_number == ENOEXEC) {  // a script that does not say by what it is to be read, as execvp has it
    words[0] = const_cast<char*>(path.c_str());
    words.insert(words.begin(), const_cast<char*>("sh"));
    execv("/bin/sh", words.data());
    error_number = errno;
  }
  if (write(report, &error_number, sizeof(error_number)) < 0) _exit(126);
  _exit(126);
}

// 0 once the exec has succeeded (which closes the pipe), else its errno.
int wait_for_exec(int report) {
  int error_number = 0;
  ssize_t got = 0;
  while ((got = read(report, &error_number, sizeof(error_number))) < 0 && errno == EINTR) {
  }
  return got == static_cast<ssize_t>(sizeof(error_number)) ? error_number : 0;
}

int wait_and_pass_on(pid_t child, const SignalInbox& inbox, const std::function<void()>& now_and_then) {
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return status;
    pollfd waiting = {inbox.fd(), POLLIN, 0};
    if (poll(&waiting, 1, kNowAndThenMs) == 0) now_and_then();
    while (const auto signal = inbox.take()) {
      if (signal->number != SIGCHLD && signal->from_a_process) kill(child, signal->number);
    }
  }
}

}  // namespace

ChildEnd run_to_the_end(const std::string& path, const std::vector<std::string>& arguments,
                        const std::function<void()>& now_and_then) {
  ChildEnd end;
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) {
    end.error_number = errno;
    return end;
  }
  // An inherited "ignore" would reap the child behind our back; the child itself gets what we got.
  struct sigaction by_default = {};
  struct sigaction inherited = {};
  by_default.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &by_default, &inherited);
  const SignalInbox inbox{SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT};
  const pid_t child = fork();
  if (child == 0) {
    sigaction(SIGCHLD, &inherited, nullptr);
    inbox.restore_mask();
    close(report[0]);
    become_command(path, arguments, report[1]);
  }
  if (child < 0) end.error_number = errno;
  close(report[1]);
  if (child > 0) {
    end.error_number = wait_for_exec(report[0]);
    end.started = end.error_number == 0;
    end.wait_status = wait_and_pass_on(child, inbox, now_and_then);
  }
  close(report[0]);
  return end;
}

}  // namespace gpucap::tools
