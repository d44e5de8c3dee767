// Signals as things to read, so that no handler runs: they are blocked and come out of a descriptor. Used by both
// programs' main threads; the previous mask is put back at the end or in a child before exec.
#pragma once

#include <signal.h>

#include <initializer_list>
#include <optional>

namespace gpucap::tools {

struct ReceivedSignal {
  int number = 0;
  bool from_a_process = false;  // sent by kill and its like, not by the terminal or the kernel
};

class SignalInbox {
 public:
  SignalInbox(std::initializer_list<int> signals);
  ~SignalInbox();
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;

  [[nodiscard]] int fd() const { return fd_; }  // readable when a signal waits
  std::optional<ReceivedSignal> take() const;
  void restore_mask() const;

 private:
  int fd_ = -1;
  sigset_t before_;
};

// Ends this process as the signal would have, without a core file.
[[noreturn]] void die_by_signal(int number);

}  // namespace gpucap::tools
