// `gpucap-top events`: see show_events.h.
#include "tools/top/show_events.h"

#include <poll.h>

#include <iostream>

#include "tools/common/signals.h"
#include "tools/top/events.h"
#include "tools/top/json.h"
#include "tools/top/watch.h"

namespace gpucap::tools {
namespace {

constexpr int kLookAgainMs = 200;

struct Totals {
  uint64_t shown = 0;
  uint64_t lost = 0;
};

void print_pass(const EventLog::Pass& pass, bool json, Totals* totals) {
  for (const std::string& file : pass.unreadable) std::cerr << "gpucap-top: " << file << '\n';
  for (const EventRecord& event : pass.events)
    std::cout << (json ? event_as_json(event) : event_as_text(event)) << '\n';
  for (const EventLoss& loss : pass.losses) {
    std::cout << (json ? loss_as_json(loss) : loss_as_text(loss)) << '\n';
    totals->lost += loss.events;
  }
  totals->shown += pass.events.size();
  std::cout.flush();
}

void print_end(const Totals& totals, bool json) {
  if (json) {
    std::cout << end_as_json(totals.shown, totals.lost) << '\n';
  } else {
    std::cout << "-- " << totals.shown << (totals.shown == 1 ? " event, " : " events, ") << totals.lost << " lost\n";
  }
  std::cout.flush();
}

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
  Totals totals;
  const auto look = [&] {
    Directories directories = open_directories(places_to_look(options.directory));
    print_pass(log.next_pass(directories), options.json, &totals);
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
  if (std::cout) print_end(totals, options.json);
  if (!std::cout) return kExitCannotWrite;
  if (ended_by != 0 && ended_by != SIGINT) die_by_signal(ended_by);
  return options.pids.empty() || log.has_matched() || options.follow ? kExitOk : kExitNothing;
}

}  // namespace gpucap::tools
