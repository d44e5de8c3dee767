// Printing for pipes and scripts: see print.h.
#include "tools/top/print.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "tools/top/csv.h"
#include "tools/top/json.h"
#include "tools/top/query.h"
#include "tools/top/table.h"
#include "tools/top/totals.h"
#include "tools/top/watch.h"
#include "wire/files.h"
#include "wire/sweep.h"

namespace gpucap::tools {
namespace {

constexpr uint64_t kSweepEveryNs = UINT64_C(60000000000);

size_t terminal_columns() {
  winsize window = {};
  constexpr size_t kUsual = 80;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 ? window.ws_col : kUsual;
}

class Printer {
 public:
  explicit Printer(const TopOptions& options) : options_(options) {
    std::string error;
    if (options.csv) {
      for (const QueryField& field : query_fields()) fields_.push_back(&field);
    } else {
      for (const std::string& name : options.query) find_fields(name, &fields_, &error);
      style_ = {true, options.units};
    }
  }

  int print() {
    const Scan scan = look();
    if (looks_++ == 0) name_troubles(scan);
    if (directories_.open.empty() && !directories_.errors.empty()) return kExitNoDirectory;
    if (const auto by = totals_by(options_.by)) {
      print_totals(scan, *by);
    } else if (!fields_.empty()) {
      if (looks_ == 1 && options_.header) std::cout << csv_header(fields_, style_);
      for (const QueryRow& row : query_rows(scan)) std::cout << csv_row(row, fields_, style_);
    } else if (options_.json) {
      std::cout << scan_as_json(scan, directories_, indented()) << '\n';
    } else {
      print_table(scan);
    }
    std::cout.flush();
    if (!std::cout) return kExitCannotWrite;
    return options_.pids.empty() || !scan.segments.empty() ? kExitOk : kExitNothing;
  }

 private:
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
    keep_pids(&result, options_.pids);
    drop_long_dead(&result, options_.keep_seconds);
    const bool for_scripts = options_.json || !fields_.empty();
    if (for_scripts) find_origins(&result);
    return result;
  }

  void name_troubles(const Scan& scan) const {
    for (const std::string& error : directories_.errors) std::cerr << "gpucap-top: " << error << '\n';
    for (const std::string& file : scan.unreadable) std::cerr << "gpucap-top: " << file << '\n';
  }

  void print_totals(const Scan& scan, TotalsBy by) const {
    const std::vector<Total> sums = totals(scan, by);
    if (options_.json) {
      std::cout << totals_as_json(sums, options_.by, scan, directories_, indented()) << '\n';
    } else if (options_.csv) {
      std::cout << totals_as_csv(sums, by, looks_ == 1);
    } else {
      separate();
      for (const std::string& line : totals_as_table(sums, by)) std::cout << line << '\n';
    }
  }

  void print_table(const Scan& scan) const {
    separate();
    const std::vector<TableRow> rows = table_rows(scan);
    if (rows.empty()) {
      std::cout << empty_table_advice(places_) << '\n';
      return;
    }
    const size_t width = isatty(STDOUT_FILENO) != 0 ? terminal_columns() : 0;
    for (const std::string& line : layout_table(rows, width, 0)) std::cout << line << '\n';
  }

  void separate() const {
    if (looks_ > 1) std::cout << '\n';
  }
  [[nodiscard]] bool indented() const { return options_.interval_seconds <= 0; }

  const TopOptions& options_;
  std::vector<const QueryField*> fields_;
  CsvStyle style_;
  Places places_;
  Directories directories_;
  uint64_t next_sweep_ns_ = 0;
  uint64_t looks_ = 0;
};

}  // namespace

int print_scans(const TopOptions& options) {
  Printer printer(options);
  while (true) {
    const int code = printer.print();
    if (code != kExitOk || options.interval_seconds <= 0) return code;
    usleep(static_cast<useconds_t>(options.interval_seconds * 1e6));
  }
}

bool on_a_terminal() {
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && terminal != nullptr && terminal[0] != '\0' &&
         std::string_view(terminal) != "dumb";
}

}  // namespace gpucap::tools
