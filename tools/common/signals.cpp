// Signals as things to read: see signals.h.
#include "tools/common/signals.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace gpucap::tools {

SignalInbox::SignalInbox(std::initializer_list<int> signals) {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : signals) sigaddset(&wanted, number);
  sigprocmask(SIG_BLOCK, &wanted, &before_);
  fd_ = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

SignalInbox::~SignalInbox() {
  if (fd_ >= 0) close(fd_);
  restore_mask();
}

std::optional<ReceivedSignal> SignalInbox::take() const {
  signalfd_siginfo info = {};
  if (read(fd_, &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) return std::nullopt;
  return ReceivedSignal{static_cast<int>(info.ssi_signo), info.ssi_code <= 0};
}

void SignalInbox::restore_mask() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }

void die_by_signal(int number) {
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_DUMPABLE, 0);  // a core handler that is a program does not look at the limit
  signal(number, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  kill(getpid(), number);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  _exit(128 + number);  // reached only if the signal does not end a process
}

}  // namespace gpucap::tools
