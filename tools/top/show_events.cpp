// `gpucap-top events`: see show_events.h.
#include "tools/top/show_events.h"

#include <poll.h>

#include <iostream>

#include "tools/common/signals.h"
#include "tools/top/counts.h"
#include "tools/top/events.h"
#include "tools/top/json.h"
#include "tools/top/options.h"

namespace gpucap::tools {
namespace {

constexpr int kLookAgainMs = 200;

// Where the log goes, in one of the forms that were asked for.
class Output {
 public:
  explicit Output(const EventsOptions& options) : options_(options) {
    if (options.csv && !options.count) std::cout << events_csv_header();
  }

  void print(const EventLog::Pass& pass) {
    for (const std::string& file : pass.unreadable) std::cerr << "gpucap-top: " << file << '\n';
    for (const EventRecord& event : pass.events) {
      if (options_.filter.wants(event)) take(event);
    }
    for (const EventLoss& loss : pass.losses) {
      lost_ += loss.events;
      if (!options_.count) tell(loss);
    }
    std::cout.flush();
  }

  void end() {
    const std::string last =
        "-- " + std::to_string(shown_) + (shown_ == 1 ? " event, " : " events, ") + std::to_string(lost_) + " lost\n";
    if (options_.json) {
      std::cout << (options_.count ? counts_as_json(counts_.by_calls(), shown_, lost_) : end_as_json(shown_, lost_))
                << '\n';
    } else if (options_.csv) {
      if (options_.count) std::cout << counts_as_csv(counts_.by_calls());
      std::cerr << last;
    } else {
      if (options_.count) {
        for (const std::string& line : counts_as_table(counts_.by_calls())) std::cout << line << '\n';
      }
      std::cout << last;
    }
    std::cout.flush();
  }

 private:
  void take(const EventRecord& event) {
    ++shown_;
    if (options_.count) {
      counts_.add(event);
    } else if (options_.csv) {
      std::cout << event_as_csv(event);
    } else {
      std::cout << (options_.json ? event_as_json(event) : event_as_text(event)) << '\n';
    }
  }
  void tell(const EventLoss& loss) const {
    // Not a row: whatever reads the table must not stumble.
    (options_.csv ? std::cerr : std::cout) << (options_.json ? loss_as_json(loss) : loss_as_text(loss)) << '\n';
  }

  const EventsOptions& options_;
  EventCounts counts_;
  uint64_t shown_ = 0;
  uint64_t lost_ = 0;
};

// False once it is time to stop.
bool wait_for_next_look(const SignalInbox& inbox, int* ended_by) {
  pollfd waiting = {inbox.fd(), POLLIN, 0};
  if (poll(&waiting, 1, kLookAgainMs) <= 0) return true;
  const auto signal = inbox.take();
  if (!signal) return true;
  *ended_by = signal->number;
  return false;
}

}  // namespace

int show_events(const EventsOptions& options) {
  EventLog log(options.pids);
  Output output(options);
  const auto look = [&] {
    Directories directories = open_directories(places_to_look(options.directory));
    output.print(log.next_pass(directories));
    return directories;
  };
  const auto fails = [](const Directories& directories) {
    return directories.open.empty() && !directories.errors.empty();
  };
  int ended_by = 0;
  if (options.follow) {
    // Blocked only while following: the end is then told even after Ctrl-C.
    const SignalInbox inbox{SIGINT, SIGTERM, SIGHUP};
    do {
      const Directories directories = look();
      if (fails(directories)) {
        std::cerr << "gpucap-top: " << directories.errors.front() << '\n';
        return kExitNoDirectory;
      }
    } while (std::cout && wait_for_next_look(inbox, &ended_by));
    if (std::cout && ended_by != 0) look();
  } else {
    const Directories directories = look();
    for (const std::string& error : directories.errors) std::cerr << "gpucap-top: " << error << '\n';
    if (fails(directories)) return kExitNoDirectory;
  }
  if (std::cout) output.end();
  if (!std::cout) return kExitCannotWrite;
  if (ended_by != 0 && ended_by != SIGINT) die_by_signal(ended_by);
  return options.pids.empty() || log.has_matched() || options.follow ? kExitOk : kExitNothing;
}

}  // namespace gpucap::tools
