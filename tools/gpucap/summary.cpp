// The line that ends a run: see summary.h.
#include "tools/gpucap/summary.h"

#include "tools/common/format.h"
#include "tools/common/text_width.h"

namespace gpucap::tools {
namespace {
constexpr size_t kWidestCommand = 60;
}  // namespace

void RunSummary::note(const Scan& scan) {
  for (const Segment& segment : scan.segments) {
    if (segment.snapshot.run_id != run_id_) continue;
    std::map<uint32_t, Device>& devices = processes_[segment.path];
    for (const wire::DeviceSnapshot& device : segment.snapshot.devices) {
      if (device.gauges.active == 0) continue;
      Device& noted = devices[device.gauges.ordinal];
      noted.peak_bytes = device.gauges.peak_bytes;
      noted.limit_bytes.reset();
      if (device.gauges.limit_bytes != GPUCAP_WIRE_NO_LIMIT) noted.limit_bytes = device.gauges.limit_bytes;
      noted.refused_count = device.gauges.refused_count;
    }
  }
}

std::string RunSummary::text(const std::string& command) const {
  std::string line = fit(command, kWidestCommand) + ": ";
  if (processes_.empty()) return line + "no CUDA use was seen";
  std::map<uint32_t, Device> largest;
  uint64_t refusals = 0;
  size_t using_gpus = 0;
  for (const auto& [path, devices] : processes_) {
    using_gpus += devices.empty() ? 0 : 1;
    for (const auto& [ordinal, device] : devices) {
      refusals += device.refused_count;
      Device& top = largest[ordinal];
      if (device.peak_bytes >= top.peak_bytes) top = device;
    }
  }
  if (largest.empty()) return line + "no GPU memory was used";
  std::string peaks;
  for (const auto& [ordinal, device] : largest) {
    peaks += (peaks.empty() ? "peak " : ", ") + human_bytes(device.peak_bytes);
    if (device.limit_bytes) peaks += " of " + human_bytes(*device.limit_bytes);
    peaks += " on GPU " + std::to_string(ordinal);
    if (!device.limit_bytes) peaks += " (no cap)";
  }
  line += peaks + ", " + std::to_string(refusals) + (refusals == 1 ? " refusal" : " refusals");
  if (using_gpus > 1) line += " (" + std::to_string(using_gpus) + " processes: the largest peak, all refusals)";
  return line;
}

}  // namespace gpucap::tools
