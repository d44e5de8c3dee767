// The table, once or for as long as it is wanted: see watch.h.
#include "tools/top/watch.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "tools/common/format.h"
#include "tools/common/signals.h"
#include "tools/common/text_width.h"
#include "tools/top/json.h"
#include "wire/files.h"
#include "wire/sweep.h"

namespace gpucap::tools {
namespace {

constexpr uint64_t kSweepEveryNs = UINT64_C(60000000000);

class Looker {
 public:
  explicit Looker(const TopOptions& options) : options_(options) {}

  // Looks for the directories anew each time: the first capped process may start after us.
  Scan look() {
    places_ = places_to_look(options_.directory);
    directories_ = open_directories(places_);
    const uint64_t now_ns = wire::monotonic_now_ns();
    if (next_sweep_ns_ <= now_ns) {
      for (const SegmentDirectory& directory : directories_.open) wire::sweep(directory.fd());
      next_sweep_ns_ = now_ns + kSweepEveryNs;
    }
    Scan result = scan(directories_);
    if (!options_.pids.empty()) {
      std::erase_if(result.segments, [&](const Segment& segment) { return options_.pids.count(segment.pid()) == 0; });
    }
    return result;
  }
  [[nodiscard]] const Places& places() const { return places_; }
  [[nodiscard]] const Directories& directories() const { return directories_; }
  // Nothing at all could be looked into.
  [[nodiscard]] bool failed() const { return directories_.open.empty() && !directories_.errors.empty(); }

 private:
  const TopOptions& options_;
  Places places_;
  Directories directories_;
  uint64_t next_sweep_ns_ = 0;
};

bool anything_to_show(const TopOptions& options, const Scan& scan) {
  return std::any_of(scan.segments.begin(), scan.segments.end(), [&](const Segment& segment) {
    return segment.liveness.liveness == wire::Liveness::kAlive || (options.json && options.all);
  });
}

void name_troubles(const Looker& looker, const Scan& scan) {
  for (const std::string& error : looker.directories().errors) std::cerr << "gpucap-top: " << error << '\n';
  for (const std::string& file : scan.unreadable) std::cerr << "gpucap-top: " << file << '\n';
}

int print_once(const TopOptions& options, Looker* looker, bool name_them) {
  const Scan found = looker->look();
  if (name_them) name_troubles(*looker, found);
  if (looker->failed()) return kExitNoDirectory;
  if (options.json) {
    std::cout << scan_as_json(found, looker->directories(), options.all, options.interval_seconds <= 0) << '\n';
  } else if (const std::vector<TableRow> rows = table_rows(found); rows.empty()) {
    std::cout << empty_table_advice(looker->places()) << '\n';
  } else {
    const size_t width = isatty(STDOUT_FILENO) != 0 ? Screen::size().columns : 0;
    for (const std::string& line : layout_table(rows, width, 0)) std::cout << line << '\n';
  }
  std::cout.flush();
  if (!std::cout) return kExitCannotWrite;
  return options.pids.empty() || anything_to_show(options, found) ? kExitOk : kExitNothing;
}

int print_repeatedly(const TopOptions& options, Looker* looker) {
  for (bool first = true;; first = false) {
    if (!first && !options.json) std::cout << '\n';
    const int code = print_once(options, looker, first);
    if (code != kExitOk) return code;
    usleep(static_cast<useconds_t>(options.interval_seconds * 1e6));
  }
}

enum class Wish { kRedraw, kStop };

// Waits for a key, a signal or the time of the next look.
Wish wait_for_wish(Screen* screen, const SignalInbox& inbox, bool* listen_to_keys, int wait_ms) {
  pollfd waiting[2] = {{inbox.fd(), POLLIN, 0}, {*listen_to_keys ? STDIN_FILENO : -1, POLLIN, 0}};
  if (poll(waiting, 2, wait_ms) <= 0) return Wish::kRedraw;
  while (const auto signal = inbox.take()) {
    switch (signal->number) {
      case SIGWINCH:
        break;
      case SIGINT:
        return Wish::kStop;
      case SIGTSTP:
        screen->leave();
        kill(getpid(), SIGSTOP);  // goes on here when it is continued
        screen->enter();
        break;
      default:
        screen->leave();
        die_by_signal(signal->number);
    }
  }
  if (waiting[1].revents != 0) {
    char key = 0;
    if (read(STDIN_FILENO, &key, 1) <= 0) *listen_to_keys = false;
    if (key == 'q' || key == 'Q') return Wish::kStop;
  }
  return Wish::kRedraw;
}

int watch(const TopOptions& options, Looker* looker) {
  Scan found = looker->look();
  if (looker->failed()) {
    name_troubles(*looker, found);
    return kExitNoDirectory;
  }
  if (!options.pids.empty() && !anything_to_show(options, found)) return kExitNothing;
  const SignalInbox inbox{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
  Screen screen;
  bool listen_to_keys = isatty(STDIN_FILENO) != 0;
  const int wait_ms = static_cast<int>((options.interval_seconds > 0 ? options.interval_seconds : 1) * 1000);
  while (screen.draw(compose_screen(found, looker->places(), Screen::size()))) {
    if (wait_for_wish(&screen, inbox, &listen_to_keys, wait_ms) == Wish::kStop) return kExitOk;
    found = looker->look();
  }
  return kExitCannotWrite;
}

bool on_a_terminal() {
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && terminal != nullptr && terminal[0] != '\0' &&
         std::string_view(terminal) != "dumb";
}

}  // namespace

std::string empty_table_advice(const Places& places) {
  std::string where;
  for (const std::string& path : places.paths) where += (where.empty() ? "" : ", ") + wire::clean_text(path);
  return "No process uses CUDA under gpucap (looked in " + where +
         "). Start one with: gpucap run --limit 4G -- COMMAND";
}

std::vector<std::string> compose_screen(const Scan& scan, const Places& places, ScreenSize size) {
  const std::vector<TableRow> rows = table_rows(scan);
  std::set<int> pids;
  for (const TableRow& row : rows) pids.insert(row.pid);
  std::string title = "gpucap-top  " + local_time(scan.realtime_ns).substr(11, 8) + "  " + std::to_string(pids.size()) +
                      (pids.size() == 1 ? " process" : " processes") + "  q quits";
  if (!scan.unreadable.empty()) title += "  (" + std::to_string(scan.unreadable.size()) + " unreadable: see --once)";
  std::vector<std::string> lines = {fit(title, size.columns)};
  if (size.lines <= 1) return lines;
  const std::vector<std::string> table = layout_table(rows, size.columns, size.lines - 1);
  lines.insert(lines.end(), table.begin(), table.end());
  if (rows.empty() && lines.size() < size.lines) lines.push_back(fit(empty_table_advice(places), size.columns));
  return lines;
}

int show_table(const TopOptions& options) {
  Looker looker(options);
  if (options.interval_seconds > 0 && (options.json || !on_a_terminal())) return print_repeatedly(options, &looker);
  if (options.once || options.json || !on_a_terminal()) return print_once(options, &looker, true);
  return watch(options, &looker);
}

}  // namespace gpucap::tools
