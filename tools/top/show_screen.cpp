// The screen's loop: see show_screen.h.
#include "tools/top/show_screen.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "tools/common/signals.h"
#include "tools/top/actions.h"
#include "tools/top/collector.h"
#include "tools/top/curses_terminal.h"
#include "tools/top/keys_handler.h"
#include "tools/top/view_screen.h"
#include "wire/files.h"

namespace gpucap::tools {
namespace {

// A process's file stays open while it is shown, and there may be more of them than descriptors by default.
void allow_many_files() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

bool wants_colours() {
  const char* no_color = std::getenv("NO_COLOR");
  return no_color == nullptr || no_color[0] == '\0';
}

class ScreenLoop {
 public:
  ScreenLoop(const TopOptions& options, bool ascii, Collector* collector, CursesTerminal* terminal)
      : collector_(*collector), terminal_(*terminal) {
    const double seconds = options.interval_seconds > 0 ? options.interval_seconds : 1;
    interval_ns_ = static_cast<uint64_t>(seconds * 1e9);
    state_.ascii = ascii;
    listens_ = isatty(STDIN_FILENO) != 0;
  }

  int run() {
    const SignalInbox inbox{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
    next_look_ns_ = wire::monotonic_now_ns() + interval_ns_;
    while (!stop_) {
      draw();
      wait(inbox);
      if (!stop_) take_keys();
      if (!stop_ && wire::monotonic_now_ns() >= next_look_ns_) look();
    }
    return code_;
  }

 private:
  void finish(int code) {
    stop_ = true;
    code_ = code;
  }

  void draw() {
    scroll_into_sight(collector_.model(), terminal_.size(), &state_);
    collector_.focus(state_);
    terminal_.draw(compose_screen(collector_.model(), state_, terminal_.size()));
  }

  void look() {
    // From now, not from when it was due: a machine that is too slow for the pace must still take keys.
    next_look_ns_ = wire::monotonic_now_ns() + interval_ns_;
    if (!collector_.look() && !collector_.trouble().empty()) {
      state_.message = collector_.trouble().front();
      state_.message_is_trouble = true;
    }
  }

  void wait(const SignalInbox& inbox) {
    const uint64_t now_ns = wire::monotonic_now_ns();
    const int wait_ms = next_look_ns_ > now_ns ? static_cast<int>((next_look_ns_ - now_ns) / 1000000) + 1 : 0;
    // Of the output only its end is waited for.
    pollfd waiting[3] = {{inbox.fd(), POLLIN, 0}, {listens_ ? STDIN_FILENO : -1, POLLIN, 0}, {STDOUT_FILENO, 0, 0}};
    if (poll(waiting, 3, wait_ms) <= 0) return;
    while (const auto signal = inbox.take()) take_signal(signal->number);
    has_input_ = waiting[1].revents != 0;
    if ((waiting[2].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) finish(kExitCannotWrite);
  }

  void take_signal(int number) {
    switch (number) {
      case SIGWINCH:
        terminal_.follow_size();
        break;
      case SIGINT:
        finish(kExitOk);
        break;
      case SIGTSTP:
        terminal_.leave();
        kill(getpid(), SIGSTOP);  // goes on here when it is continued
        terminal_.resume();
        break;
      default:
        terminal_.leave();
        die_by_signal(number);
    }
  }

  void take_keys() {
    if (!has_input_) return;
    has_input_ = false;
    bool any = false;
    while (const std::optional<Key> key = terminal_.take_key()) {
      any = true;
      if (key->code == Key::Code::kText && key->text == "\x0c") {  // Ctrl-L
        terminal_.forget();
        continue;
      }
      const size_t page = lines_a_page(collector_.model(), state_, terminal_.size());
      carry_out(handle_key(*key, collector_.model(), page, &state_));
      if (stop_) return;
    }
    // Readable and nothing to read: our input has ended, for good.
    if (!any && at_end_of_input()) listens_ = false;
  }

  static bool at_end_of_input() {
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    return poll(&input, 1, 0) > 0;
  }

  void carry_out(const Command& command) {
    if (command.kind == Command::Kind::kNone) return;
    if (command.kind == Command::Kind::kQuit) return finish(kExitOk);
    Outcome outcome{false, "It is no longer listed"};
    uint32_t ordinal = 0;
    const LiveSegment* live = collector_.segment_of(command.key, &ordinal);
    for (const ProcessRow& row : collector_.model().rows) {
      if (row.key != command.key || live == nullptr) continue;
      outcome = command.kind == Command::Kind::kSendSignal
                    ? send_signal(row, *live, command.signal)
                    : set_limit(row, *live, collector_.directories(), command.limit_bytes);
      break;
    }
    state_.message = outcome.text;
    state_.message_is_trouble = !outcome.done;
    next_look_ns_ = std::min(next_look_ns_, wire::monotonic_now_ns() + 100000000);  // what came of it shows soon
  }

  Collector& collector_;
  CursesTerminal& terminal_;
  ViewState state_;
  uint64_t interval_ns_ = 0;
  uint64_t next_look_ns_ = 0;
  bool listens_ = false;
  bool has_input_ = false;
  bool stop_ = false;
  int code_ = kExitOk;
};

}  // namespace

int show_screen(const TopOptions& options) {
  allow_many_files();
  CollectorOptions what;
  what.directory = options.directory;
  what.pids = options.pids;
  what.keep_seconds = options.keep_seconds;
  if (options.interval_seconds > 0) what.seconds_per_look = options.interval_seconds;
  Collector collector(std::move(what));
  if (!collector.look()) {
    for (const std::string& error : collector.trouble()) std::cerr << "gpucap-top: " << error << '\n';
    return kExitNoDirectory;
  }
  if (!options.pids.empty() && collector.model().rows.empty()) return kExitNothing;
  // Before ncurses starts: it looks at the locale then.
  const bool ascii = !terminal_takes_unicode() || options.ascii;
  CursesTerminal terminal(wants_colours());
  if (!terminal.ready()) {
    std::cerr << "gpucap-top: this terminal (TERM) is not known here: --once prints the table\n";
    return kExitCannotWrite;
  }
  return ScreenLoop(options, ascii, &collector, &terminal).run();
}

}  // namespace gpucap::tools
