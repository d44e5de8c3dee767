// Sums by user, group or command: see totals.h.
#include "tools/top/totals.h"

#include <algorithm>
#include <set>

#include "tools/common/format.h"
#include "tools/common/text_width.h"
#include "tools/top/csv.h"

namespace gpucap::tools {
namespace {

const char* word_of(TotalsBy by) {
  switch (by) {
    case TotalsBy::kUser:
      return "user";
    case TotalsBy::kGroup:
      return "group";
    case TotalsBy::kCommand:
      return "command";
  }
  return "";
}

std::string base_name(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos || slash + 1 == path.size() ? path : path.substr(slash + 1);
}

bool is_interpreter(std::string name) {
  while (!name.empty() && (name.back() == '.' || (name.back() >= '0' && name.back() <= '9'))) name.pop_back();
  static const std::set<std::string> kInterpreters = {"python", "pypy", "julia", "bash", "sh", "perl", "ruby", "node"};
  return kInterpreters.count(name) != 0;
}

struct Sum {
  Sums sums;
  bool all_capped = true;
  std::map<std::string, uint64_t> group_limits;  // by card and group: the members share one

  void add(const wire::DeviceSnapshot& device, const std::string& uuid, const std::string& group) {
    const gpucap_device& gauges = device.gauges;
    sums.used_bytes += device.used_bytes();
    sums.largest_peak_bytes = std::max(sums.largest_peak_bytes, gauges.peak_bytes);
    sums.refused_count += gauges.refused_count;
    sums.waiting_count += gauges.waiting_count;
    if (gauges.waiting_count != 0) sums.waiting_bytes += gauges.waiting_bytes;
    if (gauges.limit_bytes == GPUCAP_WIRE_NO_LIMIT) {
      all_capped = false;
    } else {
      sums.limit_bytes = sums.limit_bytes.value_or(0) + gauges.limit_bytes;
    }
    if (!group.empty() && gauges.group_limit_bytes != GPUCAP_WIRE_NO_LIMIT) {
      group_limits[uuid + group] = gauges.group_limit_bytes;
    }
  }
  [[nodiscard]] Sums finished() const {
    Sums result = sums;
    if (!all_capped) result.limit_bytes.reset();
    for (const auto& [key, bytes] : group_limits)
      result.group_limit_bytes = result.group_limit_bytes.value_or(0) + bytes;
    return result;
  }
};

struct Heap {
  Sum sum;
  std::map<std::string, Sum> gpus;
};

std::string name_for(const Segment& segment, TotalsBy by) {
  switch (by) {
    case TotalsBy::kUser:
      return segment.user;
    case TotalsBy::kGroup:
      return segment.snapshot.group;
    case TotalsBy::kCommand:
      return program_name(segment.snapshot.command);
  }
  return "";
}

std::string bytes_or_dash(const std::optional<uint64_t>& bytes) { return bytes ? human_bytes(*bytes) : "-"; }
std::string number_or_nothing(const std::optional<uint64_t>& value) { return value ? std::to_string(*value) : ""; }

}  // namespace

std::optional<TotalsBy> totals_by(const std::string& word) {
  for (const TotalsBy by : {TotalsBy::kUser, TotalsBy::kGroup, TotalsBy::kCommand}) {
    if (word == word_of(by)) return by;
  }
  return std::nullopt;
}

std::string program_name(const std::vector<std::string>& command) {
  if (command.empty()) return "";
  const std::string program = base_name(command[0]);
  if (!is_interpreter(program)) return program;
  for (size_t i = 1; i < command.size(); ++i) {
    if (command[i] == "-m" && i + 1 < command.size()) return program + " -m " + command[i + 1];
    // "-c code" and the like: the words that follow name nothing.
    if (command[i] == "-c" || command[i] == "-e") return program + " " + command[i];
    if (!command[i].empty() && command[i].front() != '-') return program + " " + base_name(command[i]);
  }
  return program;
}

std::vector<Total> totals(const Scan& scan, TotalsBy by) {
  std::map<std::string, Heap> heaps;
  for (const Segment& segment : scan.segments) {
    if (!segment.alive()) continue;
    Heap* heap = nullptr;
    for (const wire::DeviceSnapshot& device : segment.snapshot.devices) {
      if (device.gauges.active == 0) continue;
      if (heap == nullptr) {
        heap = &heaps[name_for(segment, by)];
        ++heap->sum.sums.processes;
      }
      const std::string uuid = gpu_uuid_text(device.gauges.uuid);
      heap->sum.add(device, uuid, segment.snapshot.group);
      Sum& gpu = heap->gpus[uuid];
      gpu.add(device, uuid, segment.snapshot.group);
      ++gpu.sums.processes;
    }
  }
  std::vector<Total> result;
  for (const auto& [name, heap] : heaps) {
    Total total{name, heap.sum.finished(), {}};
    for (const auto& [uuid, sum] : heap.gpus) total.gpus.emplace(uuid, sum.finished());
    result.push_back(std::move(total));
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Total& a, const Total& b) { return a.sums.used_bytes > b.sums.used_bytes; });
  return result;
}

std::vector<std::string> totals_as_table(const std::vector<Total>& totals, TotalsBy by) {
  std::string title = word_of(by);
  std::transform(title.begin(), title.end(), title.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
  std::vector<std::vector<std::string>> cells = {
      {title, "PROCESSES", "GPUS", "USED", "CAPS", "BUDGET", "TOP PEAK", "WAITING", "REFUSED"}};
  for (const Total& total : totals) {
    const Sums& sums = total.sums;
    cells.push_back({total.name.empty() ? "-" : total.name, std::to_string(sums.processes),
                     std::to_string(total.gpus.size()), human_bytes(sums.used_bytes), bytes_or_dash(sums.limit_bytes),
                     bytes_or_dash(sums.group_limit_bytes), human_bytes(sums.largest_peak_bytes),
                     sums.waiting_count == 0 ? "-" : human_bytes(sums.waiting_bytes),
                     std::to_string(sums.refused_count)});
  }
  return aligned_table(cells);
}

std::string totals_as_csv(const std::vector<Total>& totals, TotalsBy by, bool header) {
  std::string text;
  if (header) {
    text = csv_line({word_of(by), "processes", "gpus", "used_bytes", "limit_bytes", "group_limit_bytes",
                     "largest_peak_bytes", "waiting_count", "waiting_bytes", "refused_count"},
                    false);
  }
  for (const Total& total : totals) {
    const Sums& sums = total.sums;
    text += csv_line(
        {total.name, std::to_string(sums.processes), std::to_string(total.gpus.size()), std::to_string(sums.used_bytes),
         number_or_nothing(sums.limit_bytes), number_or_nothing(sums.group_limit_bytes),
         std::to_string(sums.largest_peak_bytes), std::to_string(sums.waiting_count),
         std::to_string(sums.waiting_bytes), std::to_string(sums.refused_count)},
        false);
  }
  return text;
}

}  // namespace gpucap::tools
