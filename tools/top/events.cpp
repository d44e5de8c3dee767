// The event log: see events.h.
#include "tools/top/events.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tools/common/format.h"
#include "tools/common/names.h"
#include "tools/common/text_width.h"
#include "tools/top/csv.h"

namespace gpucap::tools {
namespace {

std::string api_name(const std::vector<std::string>& names, uint16_t number) {
  return number < names.size() ? names[number] : "api " + std::to_string(number);
}

// Device numbers come from a byte of the log; a writer has fewer.
const std::string& gpu_uuid_of(const std::vector<std::string>& uuids, uint32_t gpu) {
  static const std::string kUnknown;
  return gpu < uuids.size() ? uuids[gpu] : kUnknown;
}

std::string bytes_text(const EventRecord& event) {
  return event_bytes_known(event) ? human_bytes(event.bytes) : "none";
}

}  // namespace

bool event_bytes_known(const EventRecord& event) {
  return event.operation != GPUCAP_OP_LIMIT || event.bytes != GPUCAP_WIRE_NO_LIMIT;
}

std::string event_as_text(const EventRecord& event) {
  const std::string call = event.origin.empty() ? event.api : event.origin + " > " + event.api;
  std::string line = local_time(event.time_ns);
  line += padded_left(std::to_string(event.pid), 9);
  line += "  GPU " + std::to_string(event.gpu);
  line += "  " + padded_right(operation_name(event.operation), 7);
  line += "  " + padded_right(call, 30);
  line += padded_left(bytes_text(event), 10);
  line += "  " + result_name(event.result);
  line += "  " + hexadecimal(event.address);
  line += "  used " + human_bytes(event.used_after_bytes);
  if (event.refused_by > GPUCAP_REFUSED_BY_CAP) line += "  by the " + refused_by_name(event.refused_by);
  return line;
}

std::string events_csv_header() {
  return csv_line({"time_ns", "pid", "thread", "gpu", "gpu_uuid", "operation", "kind", "api", "origin", "bytes",
                   "refused_by", "result", "result_name", "address", "used_after_bytes", "latency_ns"},
                  false);
}

std::string event_as_csv(const EventRecord& event) {
  return csv_line({std::to_string(event.time_ns), std::to_string(event.pid), std::to_string(event.thread),
                   std::to_string(event.gpu), event.gpu_uuid, operation_name(event.operation), kind_name(event.kind),
                   event.api, event.origin, event_bytes_known(event) ? std::to_string(event.bytes) : "",
                   event.refused_by == GPUCAP_REFUSED_BY_NOTHING ? "" : refused_by_name(event.refused_by),
                   std::to_string(event.result), result_name(event.result), hexadecimal(event.address),
                   std::to_string(event.used_after_bytes), std::to_string(event.latency_ns)},
                  false);
}

std::string loss_as_text(const EventLoss& loss) {
  return "-- " + std::to_string(loss.events) + (loss.events == 1 ? " event" : " events") + " lost of pid " +
         std::to_string(loss.pid) + " (" + loss.command + ")";
}

EventLog::Pass EventLog::next_pass(const Directories& directories) {
  Pass pass;
  open_new(directories, &pass);
  for (auto entry = sources_.begin(); entry != sources_.end();) {
    if (drain(&entry->second, &pass)) {
      ++entry;
    } else {
      finished_.insert(entry->first);
      entry = sources_.erase(entry);
    }
  }
  std::stable_sort(pass.events.begin(), pass.events.end(),
                   [](const EventRecord& a, const EventRecord& b) { return a.time_ns < b.time_ns; });
  return pass;
}

void EventLog::open_new(const Directories& directories, Pass* pass) {
  for (const SegmentDirectory& directory : directories.open) {
    for (const std::string& name : directory.segment_names()) {
      const std::string path = directory.path() + "/" + name;
      if (sources_.count(path) != 0 || finished_.count(path) != 0) continue;
      wire::SegmentReader reader;
      Segment segment;
      int error_number = 0;
      wire::ReadError error = reader.open(directory.fd(), name.c_str(), &error_number);
      if (error == wire::ReadError::kNone) error = reader.snapshot(&segment.snapshot, &error_number);
      if (error != wire::ReadError::kNone) {
        if (error_number != ENOENT) pass->unreadable.push_back(read_failure(path, error, error_number));
        finished_.insert(path);
        continue;
      }
      segment.liveness = reader.liveness();
      if (!pids_.empty() && pids_.count(segment.pid()) == 0) {
        finished_.insert(path);
        continue;
      }
      has_matched_ = true;
      wire::FileRingReader ring = reader.ring();
      const wire::SegmentSnapshot& snapshot = segment.snapshot;
      sources_.emplace(path, Source{std::move(reader),
                                    ring,
                                    segment.pid(),
                                    command_line(snapshot.command),
                                    snapshot.created_realtime_ns,
                                    snapshot.created_monotonic_ns,
                                    snapshot.ring_capacity,
                                    0,
                                    {}});
    }
  }
}

void EventLog::learn_gpus(Source* source) {
  wire::SegmentSnapshot snapshot;
  int error_number = 0;
  if (source->reader.snapshot(&snapshot, &error_number) != wire::ReadError::kNone) return;
  source->gpu_uuids.clear();
  for (const wire::DeviceSnapshot& device : snapshot.devices) {
    constexpr uint8_t kUntold[sizeof(device.gauges.uuid)] = {};
    const bool told = std::memcmp(device.gauges.uuid, kUntold, sizeof(kUntold)) != 0;
    source->gpu_uuids.push_back(told ? gpu_uuid_text(device.gauges.uuid) : "");
  }
}

bool EventLog::drain(Source* source, Pass* pass) {
  // Asked before the reading: what a dying writer still finished is then read, not given up.
  const bool dead = source->reader.liveness().liveness != wire::Liveness::kAlive;
  const std::vector<std::string>& names = source->reader.api_names();
  gpucap_event raw;
  bool learned = false;  // once a pass is often enough
  wire::RingStatus status = wire::RingStatus::kEvent;
  // A writer that is faster than we are must not keep us in this pass for ever.
  for (uint64_t count = 0; count < 2 * source->capacity; ++count) {
    status = source->ring.next(dead, &raw);
    if (status != wire::RingStatus::kEvent) break;
    EventRecord event;
    // Unsigned: an event from before the creation, which only damage can make, wraps instead of being undefined.
    event.time_ns = source->created_realtime_ns + (raw.monotonic_ns - source->created_monotonic_ns);
    event.pid = source->pid;
    event.thread = raw.thread;
    event.gpu = raw.device;
    // A process may tell of a card only once it uses it, but before anything happens there.
    if (gpu_uuid_of(source->gpu_uuids, raw.device).empty() && !learned) learn_gpus(source);
    learned = true;
    event.gpu_uuid = gpu_uuid_of(source->gpu_uuids, raw.device);
    event.operation = raw.operation;
    event.kind = raw.kind;
    event.refused_by = raw.refused_by;
    event.api = api_name(names, raw.api);
    if (raw.origin != 0) event.origin = api_name(names, raw.origin);
    event.bytes = raw.bytes;
    event.result = raw.result;
    event.address = raw.address;
    event.used_after_bytes = raw.used_after;
    event.latency_ns = raw.latency_ns;
    pass->events.push_back(std::move(event));
  }
  if (const uint64_t lost = source->ring.lost(); lost > source->lost_told) {
    pass->losses.push_back({source->pid, source->command, lost - source->lost_told});
    source->lost_told = lost;
  }
  return !(status == wire::RingStatus::kFailed || (dead && status == wire::RingStatus::kCaughtUp));
}

}  // namespace gpucap::tools
