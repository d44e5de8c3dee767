// JSON: see json.h. Every text has been cleaned by the reader, so it is valid UTF-8.
#include "tools/top/json.h"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/common/format.h"
#include "tools/common/names.h"
#include "tools/top/table.h"

namespace gpucap::tools {
namespace {

using Json = nlohmann::ordered_json;

Json number_or_null(bool known, uint64_t value) { return known ? Json(value) : Json(nullptr); }

std::string uuid_text(const uint8_t (&uuid)[16]) {
  std::string text = "GPU-";
  for (size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    std::array<char, 3> digits;
    std::snprintf(digits.data(), digits.size(), "%02x", uuid[i]);
    text += digits.data();
  }
  return text;
}

Json device_json(const wire::DeviceSnapshot& device, const std::vector<std::string>& api_names) {
  const gpucap_device& gauges = device.gauges;
  Json apis = Json::array();
  for (size_t api = 0; api < device.counters.size() && api < api_names.size(); ++api) {
    const wire::ApiCounters& counters = device.counters[api];
    if (counters.calls == 0 && counters.refused == 0) continue;
    apis.push_back({{"name", api_names[api]},
                    {"calls", counters.calls},
                    {"refused", counters.refused},
                    {"bytes", counters.bytes}});
  }
  return {{"ordinal", gauges.ordinal},
          {"name", device.name},
          {"uuid", uuid_text(gauges.uuid)},
          {"active", gauges.active != 0},
          {"physical_bytes", gauges.physical_bytes},
          {"limit_bytes", number_or_null(gauges.limit_bytes != GPUCAP_WIRE_NO_LIMIT, gauges.limit_bytes)},
          {"used_bytes", device.used_bytes()},
          {"peak_bytes", gauges.peak_bytes},
          {"linear_bytes", gauges.linear_bytes},
          {"array_bytes", gauges.array_bytes},
          {"pool_bytes", gauges.pool_bytes},
          {"vmm_bytes", gauges.vmm_bytes},
          {"managed_bytes", gauges.managed_bytes},
          {"driver_bytes", gauges.driver_bytes},
          {"driver_source", truth_name(gauges.truth)},
          {"reserved_bytes", gauges.reserved_bytes},
          {"live_count", gauges.live_count},
          {"refused_count", gauges.refused_count},
          {"refused_bytes", gauges.refused_bytes},
          {"apis", std::move(apis)}};
}

Json process_json(const Segment& segment, const Scan& scan) {
  const wire::SegmentSnapshot& snapshot = segment.snapshot;
  Json devices = Json::array();
  for (const wire::DeviceSnapshot& device : snapshot.devices) devices.push_back(device_json(device, segment.api_names));
  return {{"pid", segment.pid()},
          {"pid_in_namespace", snapshot.pid},
          {"user", segment.user},
          {"state", wire::to_text(segment.liveness.liveness)},
          {"command", snapshot.command},
          {"run_id", snapshot.run_id},
          {"version", snapshot.version},
          {"started_ns", snapshot.created_realtime_ns},
          {"ended_ns", number_or_null(snapshot.ended_realtime_ns != 0, snapshot.ended_realtime_ns)},
          {"age_seconds", age_seconds(snapshot, scan)},
          {"events_written", snapshot.events_claimed},
          {"events_dropped", snapshot.events_dropped},
          {"devices", std::move(devices)},
          {"file", wire::clean_text(segment.path)}};
}

std::string one_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string scan_as_json(const Scan& scan, const Directories& directories, bool all, bool indented) {
  Json places = Json::array();
  for (const SegmentDirectory& directory : directories.open) places.push_back(wire::clean_text(directory.path()));
  Json processes = Json::array();
  for (const Segment& segment : scan.segments) {
    if (!all && segment.liveness.liveness != wire::Liveness::kAlive) continue;
    processes.push_back(process_json(segment, scan));
  }
  const Json json = {{"schema", kJsonSchema},
                     {"time_ns", scan.realtime_ns},
                     {"directories", std::move(places)},
                     {"processes", std::move(processes)},
                     {"unreadable", scan.unreadable}};
  return indented ? json.dump(2, ' ', false, Json::error_handler_t::replace) : one_line(json);
}

std::string event_as_json(const EventRecord& event) {
  return one_line({{"type", "event"},
                   {"time_ns", event.time_ns},
                   {"pid", event.pid},
                   {"thread", event.thread},
                   {"gpu", event.gpu},
                   {"operation", operation_name(event.operation)},
                   {"kind", kind_name(event.kind)},
                   {"api", event.api},
                   {"origin", event.origin.empty() ? Json(nullptr) : Json(event.origin)},
                   {"bytes", event.bytes},
                   {"result", event.result},
                   {"result_name", result_name(event.result)},
                   {"address", hexadecimal(event.address)},
                   {"used_after_bytes", event.used_after_bytes},
                   {"latency_ns", event.latency_ns}});
}

std::string loss_as_json(const EventLoss& loss) {
  return one_line({{"type", "lost"}, {"pid", loss.pid}, {"events", loss.events}});
}

std::string end_as_json(uint64_t shown, uint64_t lost) {
  return one_line({{"type", "end"}, {"events", shown}, {"lost", lost}});
}

}  // namespace gpucap::tools
