// JSON: see json.h. Every text has been cleaned by the reader, so it is valid UTF-8.
#include "tools/top/json.h"

#include <nlohmann/json.hpp>

#include "tools/common/format.h"
#include "tools/common/names.h"
#include "tools/top/table.h"

namespace gpucap::tools {
namespace {

using Json = nlohmann::ordered_json;

Json number_or_null(bool known, uint64_t value) { return known ? Json(value) : Json(nullptr); }

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json limit_or_null(uint64_t bytes) { return number_or_null(bytes != GPUCAP_WIRE_NO_LIMIT, bytes); }

Json moment_or_null(const wire::SegmentSnapshot& snapshot, uint64_t monotonic_ns) {
  return number_or_null(monotonic_ns != 0, wall_time_ns(snapshot, monotonic_ns));
}

Json api_or_null(const std::vector<std::string>& names, uint32_t number) {
  return number != 0 && number < names.size() ? Json(names[number]) : Json(nullptr);
}

Json waiting_json(const Segment& segment, const gpucap_device& gauges) {
  if (gauges.waiting_count == 0 || !segment.alive()) return nullptr;
  return {{"count", gauges.waiting_count},
          {"bytes", gauges.waiting_bytes},
          {"since_ns", moment_or_null(segment.snapshot, gauges.waiting_monotonic_ns)}};
}

Json last_refusal_json(const Segment& segment, const gpucap_device& gauges) {
  if (gauges.last_refused_monotonic_ns == 0) return nullptr;
  return {{"bytes", gauges.last_refused_bytes},
          {"api", api_or_null(segment.api_names, gauges.last_refused_api)},
          {"origin", api_or_null(segment.api_names, gauges.last_refused_origin)},
          {"by", refused_by_name(gauges.last_refused_by)},
          {"time_ns", wall_time_ns(segment.snapshot, gauges.last_refused_monotonic_ns)}};
}

Json apis_json(const Segment& segment, const wire::DeviceSnapshot& device) {
  Json apis = Json::array();
  for (size_t api = 1; api < device.counters.size() && api < segment.api_names.size(); ++api) {
    const wire::ApiCounters& counters = device.counters[api];
    if (counters.calls == 0 && counters.refused == 0) continue;
    apis.push_back({{"name", segment.api_names[api]},
                    {"calls", counters.calls},
                    {"refused", counters.refused},
                    {"bytes", counters.bytes}});
  }
  return apis;
}

Json device_json(const Segment& segment, const wire::DeviceSnapshot& device) {
  const gpucap_device& gauges = device.gauges;
  const bool in_a_group = !segment.snapshot.group.empty();
  return {
      {"ordinal", gauges.ordinal},
      {"name", device.name},
      {"uuid", gpu_uuid_text(gauges.uuid)},
      {"active", gauges.active != 0},
      {"physical_bytes", gauges.physical_bytes},
      {"limit_bytes", limit_or_null(gauges.limit_bytes)},
      {"limit_source",
       gauges.limit_source == GPUCAP_LIMIT_FROM_NOWHERE ? Json(nullptr) : Json(limit_source_name(gauges.limit_source))},
      {"policy_limit_bytes", limit_or_null(gauges.policy_limit_bytes)},
      {"group_limit_bytes", in_a_group ? limit_or_null(gauges.group_limit_bytes) : Json(nullptr)},
      {"group_used_bytes", number_or_null(in_a_group, gauges.group_used_bytes)},
      {"used_bytes", device.used_bytes()},
      {"peak_bytes", gauges.peak_bytes},
      {"peak_ns", moment_or_null(segment.snapshot, gauges.peak_monotonic_ns)},
      {"linear_bytes", gauges.linear_bytes},
      {"array_bytes", gauges.array_bytes},
      {"pool_bytes", gauges.pool_bytes},
      {"vmm_bytes", gauges.vmm_bytes},
      {"managed_bytes", gauges.managed_bytes},
      {"driver_bytes", gauges.driver_bytes},
      {"driver_source", truth_name(gauges.truth)},
      {"reserved_bytes", device.reserved_bytes},
      {"live_count", device.live_count},
      {"refused_count", gauges.refused_count},
      {"refused_bytes", gauges.refused_bytes},
      {"last_refusal", last_refusal_json(segment, gauges)},
      {"waiting", waiting_json(segment, gauges)},
      {"waits_count", gauges.waits_count},
      {"waits_ns", gauges.waits_ns},
      {"observed_count", gauges.observed_count},
      {"observed_bytes", gauges.observed_bytes},
      {"failed_count", gauges.failed_count},
      {"apis", apis_json(segment, device)}};
}

Json process_json(const Segment& segment, const Scan& scan) {
  const wire::SegmentSnapshot& snapshot = segment.snapshot;
  const int parent = segment.origin.parent_pid;
  Json devices = Json::array();
  for (const wire::DeviceSnapshot& device : snapshot.devices) devices.push_back(device_json(segment, device));
  return {{"pid", segment.pid()},
          {"pid_in_namespace", snapshot.pid},
          {"parent_pid", parent != 0 ? Json(parent) : Json(nullptr)},
          {"parent_pid_in_namespace", number_or_null(snapshot.parent_pid != 0, snapshot.parent_pid)},
          {"user", segment.user},
          {"container", text_or_null(segment.origin.container)},
          {"group", text_or_null(snapshot.group)},
          {"on_limit", on_limit_name(snapshot.on_limit)},
          {"wait_at_most_ns", number_or_null(snapshot.wait_at_most_ns != 0, snapshot.wait_at_most_ns)},
          {"state", wire::to_text(segment.liveness.liveness)},
          {"command", snapshot.command},
          {"run_id", snapshot.run_id},
          {"version", snapshot.version},
          {"started_ns", snapshot.created_realtime_ns},
          {"ended_ns", number_or_null(snapshot.ended_realtime_ns != 0, snapshot.ended_realtime_ns)},
          {"dead_since_ns", number_or_null(segment.dead_since_ns != 0, segment.dead_since_ns)},
          {"age_seconds", age_seconds(segment, scan)},
          {"events_written", snapshot.events_claimed},
          {"events_dropped", snapshot.events_dropped},
          {"devices", std::move(devices)},
          {"file", wire::clean_text(segment.path)}};
}

Json sums_json(const Sums& sums) {
  return {{"processes", sums.processes},
          {"used_bytes", sums.used_bytes},
          {"limit_bytes", sums.limit_bytes ? Json(*sums.limit_bytes) : Json(nullptr)},
          {"group_limit_bytes", sums.group_limit_bytes ? Json(*sums.group_limit_bytes) : Json(nullptr)},
          {"largest_peak_bytes", sums.largest_peak_bytes},
          {"waiting_count", sums.waiting_count},
          {"waiting_bytes", sums.waiting_bytes},
          {"refused_count", sums.refused_count}};
}

Json head_of(const Scan& scan, const Directories& directories) {
  Json places = Json::array();
  for (const SegmentDirectory& directory : directories.open) places.push_back(wire::clean_text(directory.path()));
  return {{"schema", kJsonSchema}, {"time_ns", scan.realtime_ns}, {"directories", std::move(places)}};
}

std::string one_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string dumped(const Json& json, bool indented) {
  return indented ? json.dump(2, ' ', false, Json::error_handler_t::replace) : one_line(json);
}

}  // namespace

std::string scan_as_json(const Scan& scan, const Directories& directories, bool indented) {
  Json processes = Json::array();
  for (const Segment& segment : scan.segments) processes.push_back(process_json(segment, scan));
  Json json = head_of(scan, directories);
  json["processes"] = std::move(processes);
  json["unreadable"] = scan.unreadable;
  return dumped(json, indented);
}

std::string totals_as_json(const std::vector<Total>& totals, const std::string& by, const Scan& scan,
                           const Directories& directories, bool indented) {
  Json entries = Json::array();
  for (const Total& total : totals) {
    Json entry = {{"name", text_or_null(total.name)}};
    entry.update(sums_json(total.sums));
    Json gpus = Json::array();
    for (const auto& [uuid, sums] : total.gpus) {
      Json gpu = {{"uuid", uuid}};
      gpu.update(sums_json(sums));
      gpus.push_back(std::move(gpu));
    }
    entry["gpus"] = std::move(gpus);
    entries.push_back(std::move(entry));
  }
  Json json = head_of(scan, directories);
  json["by"] = by;
  json["totals"] = std::move(entries);
  json["unreadable"] = scan.unreadable;
  return dumped(json, indented);
}

std::string event_as_json(const EventRecord& event) {
  return one_line(
      {{"type", "event"},
       {"time_ns", event.time_ns},
       {"pid", event.pid},
       {"thread", event.thread},
       {"gpu", event.gpu},
       {"gpu_uuid", text_or_null(event.gpu_uuid)},
       {"operation", operation_name(event.operation)},
       {"kind", kind_name(event.kind)},
       {"api", event.api},
       {"origin", event.origin.empty() ? Json(nullptr) : Json(event.origin)},
       {"bytes", event_bytes_known(event) ? Json(event.bytes) : Json(nullptr)},
       {"refused_by",
        event.refused_by == GPUCAP_REFUSED_BY_NOTHING ? Json(nullptr) : Json(refused_by_name(event.refused_by))},
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

std::string counts_as_json(const std::vector<CountedApi>& apis, uint64_t events, uint64_t lost) {
  Json entries = Json::array();
  for (const CountedApi& api : apis) {
    const bool timed = api.latency.count() != 0;
    entries.push_back({{"name", api.name},
                       {"calls", api.calls},
                       {"refused", api.refused},
                       {"failed", api.failed},
                       {"bytes", api.bytes},
                       {"timed", api.latency.count()},
                       {"mean_ns", number_or_null(timed, api.latency.mean_ns())},
                       {"p99_ns", number_or_null(timed, api.latency.percentile_ns(99))}});
  }
  return one_line({{"type", "counts"}, {"apis", std::move(entries)}, {"events", events}, {"lost", lost}});
}

}  // namespace gpucap::tools
