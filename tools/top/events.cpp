// The event log: see events.h.
#include "tools/top/events.h"

#include <algorithm>
#include <cerrno>

#include "tools/common/format.h"
#include "tools/common/names.h"
#include "tools/common/text_width.h"

namespace gpucap::tools {
namespace {

std::string api_name(const std::vector<std::string>& names, uint16_t number) {
  return number < names.size() ? names[number] : "api " + std::to_string(number);
}

}  // namespace

std::string event_as_text(const EventRecord& event) {
  const std::string call = event.origin.empty() ? event.api : event.origin + " > " + event.api;
  std::string line = local_time(event.time_ns);
  line += padded_left(std::to_string(event.pid), 9);
  line += "  GPU " + std::to_string(event.gpu);
  line += "  " + padded_right(operation_name(event.operation), 7);
  line += "  " + padded_right(call, 30);
  line += padded_left(human_bytes(event.bytes), 10);
  line += "  " + result_name(event.result);
  line += "  " + hexadecimal(event.address);
  line += "  used " + human_bytes(event.used_after_bytes);
  return line;
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
      sources_.emplace(path,
                       Source{std::move(reader), ring, segment.pid(), command_line(snapshot.command),
                              snapshot.created_realtime_ns, snapshot.created_monotonic_ns, snapshot.ring_capacity});
    }
  }
}

bool EventLog::drain(Source* source, Pass* pass) {
  // Asked before the reading: what a dying writer still finished is then read, not given up.
  const bool dead = source->reader.liveness().liveness != wire::Liveness::kAlive;
  const std::vector<std::string>& names = source->reader.api_names();
  gpucap_event raw;
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
    event.operation = raw.operation;
    event.kind = raw.kind;
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
