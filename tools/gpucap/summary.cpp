// What ends a run: see summary.h.
#include "tools/gpucap/summary.h"

#include <algorithm>

#include "tools/common/format.h"
#include "tools/common/text_width.h"
#include "tools/gpucap/gpu_name.h"

namespace gpucap::tools {
namespace {

constexpr size_t kWidestCommand = 60;
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr size_t kShortUuid = 12;  // "GPU-" and the first group of digits

std::optional<uint64_t> limit_or_none(uint64_t bytes) {
  if (bytes == GPUCAP_WIRE_NO_LIMIT) return std::nullopt;
  return bytes;
}

RunDevice noted(const wire::DeviceSnapshot& device, const wire::SegmentSnapshot& snapshot) {
  const gpucap_device& gauges = device.gauges;
  RunDevice run;
  run.ordinal = gauges.ordinal;
  run.uuid = uuid_as_text(gauges.uuid);
  run.name = device.name;
  run.physical_bytes = gauges.physical_bytes;
  run.peak_bytes = gauges.peak_bytes;
  run.limit_bytes = limit_or_none(gauges.limit_bytes);
  run.limit_source = gauges.limit_source;
  run.on_limit = snapshot.on_limit;
  if (!snapshot.group.empty()) run.group_limit_bytes = limit_or_none(gauges.group_limit_bytes);
  run.processes = 1;
  run.refused_count = gauges.refused_count;
  run.refused_bytes = gauges.refused_bytes;
  run.observed_count = gauges.observed_count;
  run.observed_bytes = gauges.observed_bytes;
  run.waits_count = gauges.waits_count;
  run.waits_ns = gauges.waits_ns;
  run.failed_count = gauges.failed_count;
  return run;
}

void add(RunDevice* sum, const RunDevice& one) {
  RunDevice total = one.peak_bytes >= sum->peak_bytes ? one : *sum;
  total.processes = sum->processes + one.processes;
  total.refused_count = sum->refused_count + one.refused_count;
  total.refused_bytes = sum->refused_bytes + one.refused_bytes;
  total.observed_count = sum->observed_count + one.observed_count;
  total.observed_bytes = sum->observed_bytes + one.observed_bytes;
  total.waits_count = sum->waits_count + one.waits_count;
  total.waits_ns = sum->waits_ns + one.waits_ns;
  total.failed_count = sum->failed_count + one.failed_count;
  *sum = std::move(total);
}

std::string counted(uint64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::string short_duration(uint64_t ns) {
  return ns < 1000000000 ? std::to_string(ns / 1000000) + "ms" : human_duration(ns / 1000000000);
}

std::string peak_text(const RunDevice& device, bool ordinal_is_ambiguous) {
  std::string text = human_bytes(device.peak_bytes);
  if (device.limit_bytes) text += " of " + human_bytes(*device.limit_bytes);
  text += " on GPU " + std::to_string(device.ordinal);
  if (ordinal_is_ambiguous) text += " (" + device.uuid.substr(0, kShortUuid) + ")";
  if (!device.limit_bytes) text += device.group_limit_bytes ? " (no cap of its own)" : " (no cap)";
  return text;
}

}  // namespace

std::optional<uint64_t> RunDevice::suggested_limit_bytes() const {
  if (on_limit != GPUCAP_ON_LIMIT_OBSERVE || peak_bytes == 0 || peak_bytes > UINT64_MAX - kMiB) return std::nullopt;
  return (peak_bytes + kMiB - 1) / kMiB * kMiB;
}

void RunSummary::note(const Scan& scan) {
  for (const Segment& segment : scan.segments) {
    if (segment.snapshot.run_id != run_id_) continue;
    Process& process = processes_[segment.path];
    process.devices.clear();
    for (const wire::DeviceSnapshot& device : segment.snapshot.devices) {
      if (device.gauges.active != 0) process.devices.push_back(noted(device, segment.snapshot));
    }
  }
}

std::vector<RunDevice> RunSummary::devices() const {
  // By card where it is known: two processes may number two cards alike. The ordinal comes first for the order alone.
  std::map<std::string, RunDevice> cards;
  const std::string unknown = uuid_as_text({});
  for (const auto& [path, process] : processes_) {
    for (const RunDevice& device : process.devices) {
      const std::string key = device.uuid == unknown ? std::to_string(device.ordinal) : device.uuid;
      const auto [at, fresh] = cards.try_emplace(key, device);
      if (!fresh) add(&at->second, device);
    }
  }
  std::vector<RunDevice> result;
  for (auto& [key, device] : cards) result.push_back(std::move(device));
  std::stable_sort(result.begin(), result.end(),
                   [](const RunDevice& a, const RunDevice& b) { return a.ordinal < b.ordinal; });
  return result;
}

uint64_t RunSummary::processes_with_gpus() const {
  return static_cast<uint64_t>(std::count_if(processes_.begin(), processes_.end(),
                                             [](const auto& entry) { return !entry.second.devices.empty(); }));
}

std::string RunSummary::text(const std::string& command) const {
  std::string line = fit(command, kWidestCommand) + ": ";
  if (processes_.empty()) return line + "no CUDA use was seen";
  const std::vector<RunDevice> cards = devices();
  if (cards.empty()) return line + "no GPU memory was used";
  RunDevice sum;
  std::string suggestion;
  for (size_t i = 0; i < cards.size(); ++i) {
    const auto same_ordinal = [&](const RunDevice& other) { return other.ordinal == cards[i].ordinal; };
    const bool ambiguous = std::count_if(cards.begin(), cards.end(), same_ordinal) > 1;
    line += (i == 0 ? "peak " : ", ") + peak_text(cards[i], ambiguous);
    add(&sum, cards[i]);
    if (const auto bytes = cards[i].suggested_limit_bytes(); bytes && cards[i].observed_count > 0) {
      suggestion += (suggestion.empty() ? "" : ", ") + std::to_string(*bytes / kMiB) + "M on GPU " +
                    std::to_string(cards[i].ordinal);
    }
  }
  line += ", " + counted(sum.refused_count, "refusal", "refusals");
  if (sum.observed_count > 0) {
    line += ", " + std::to_string(sum.observed_count) + " let through that the limit would have refused (" +
            human_bytes(sum.observed_bytes) + ")";
  }
  if (sum.waits_count > 0) {
    line += ", " + counted(sum.waits_count, "wait", "waits") + " for room (" + short_duration(sum.waits_ns) + ")";
  }
  if (sum.failed_count > 0) line += ", " + std::to_string(sum.failed_count) + " turned down by the card itself";
  if (const uint64_t using_gpus = processes_with_gpus(); using_gpus > 1) {
    line += " (" + std::to_string(using_gpus) + " processes: the largest peak, all refusals)";
  }
  if (!suggestion.empty()) {
    line += "\ngpucap: the smallest limit that would have let everything through: " + suggestion;
  }
  return line;
}

}  // namespace gpucap::tools
