// Segments kept open: see live_segments.h.
#include "tools/top/live_segments.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "wire/files.h"

namespace gpucap::tools {
namespace {

constexpr uint64_t kMostEventsALook = 512;  // of one process; a pane shows far fewer
constexpr size_t kTailEvents = 64;

std::string name_of_process(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return wire::clean_text(name);
}

// What a sweep leaves on the file of a killed process: see wire/sweep.h.
uint64_t found_dead_ns(const std::string& path, uint64_t now_ns) {
  struct stat status = {};
  if (lstat(path.c_str(), &status) != 0 || (status.st_mode & S_ISVTX) == 0) return now_ns;
  return static_cast<uint64_t>(status.st_mtim.tv_sec) * 1000000000 + static_cast<uint64_t>(status.st_mtim.tv_nsec);
}

}  // namespace

gpucap_event last_refusal(const gpucap_device& gauges) {
  gpucap_event event = {};
  event.monotonic_ns = gauges.last_refused_monotonic_ns;
  event.device = static_cast<uint8_t>(gauges.ordinal);
  event.operation = GPUCAP_OP_REFUSE;
  event.refused_by = static_cast<uint8_t>(gauges.last_refused_by);
  event.api = static_cast<uint16_t>(gauges.last_refused_api);
  event.origin = static_cast<uint16_t>(gauges.last_refused_origin);
  event.bytes = gauges.last_refused_bytes;
  event.used_after = kUseUnknown;
  return event;
}

LiveSegment* LiveSegments::find(const std::string& path) {
  const auto found = segments_.find(path);
  return found != segments_.end() ? &found->second : nullptr;
}

std::vector<std::string> LiveSegments::unreadable() const {
  std::vector<std::string> reasons;
  for (const auto& [path, reason] : unreadable_) reasons.push_back(reason);
  return reasons;
}

void LiveSegments::look(const Directories& directories) {
  realtime_ns_ = wire::realtime_now_ns();
  monotonic_ns_ = wire::monotonic_now_ns();
  new_events_.clear();
  unreadable_.clear();
  std::set<std::string> present;
  for (const SegmentDirectory& directory : directories.open) {
    for (const std::string& name : directory.segment_names()) {
      const std::string path = directory.path() + "/" + name;
      present.insert(path);
      if (unwanted_.count(path) != 0) continue;
      if (LiveSegment* live = find(path); live != nullptr) {
        read_again(live, path);
      } else {
        open_new(directory, name, path);
      }
    }
  }
  std::erase_if(segments_, [&](const auto& entry) { return present.count(entry.first) == 0; });
  std::erase_if(unwanted_, [&](const std::string& path) { return present.count(path) == 0; });
  std::stable_sort(new_events_.begin(), new_events_.end(),
                   [](const TailEvent& a, const TailEvent& b) { return a.realtime_ns() < b.realtime_ns(); });
}

void LiveSegments::open_new(const SegmentDirectory& directory, const std::string& name, const std::string& path) {
  LiveSegment live;
  int error_number = 0;
  wire::ReadError error = live.reader.open(directory.fd(), name.c_str(), &error_number);
  if (error == wire::ReadError::kNone) {
    error = live.reader.snapshot(&live.segment.snapshot, &error_number, wire::SegmentReader::Counters::kLeftOut);
  }
  if (error != wire::ReadError::kNone) {
    // Swept between the listing and the open: nobody's trouble.
    if (error_number != ENOENT) unreadable_[path] = read_failure(path, error, error_number);
    return;
  }
  const wire::SegmentSnapshot& snapshot = live.segment.snapshot;
  live.directory = directory.path();
  live.name = name;
  live.segment.path = path;
  live.segment.liveness = live.reader.liveness();
  if (!pids_.empty() && pids_.count(live.segment.pid()) == 0) {
    unwanted_.insert(path);
    return;
  }
  live.owner_uid = live.reader.owner_uid();
  live.segment.user = user_name(live.owner_uid);
  live.origin = std::make_shared<EventOrigin>();
  *live.origin = {
      live.segment.pid(), snapshot.created_realtime_ns, snapshot.created_monotonic_ns, live.reader.api_names(), {}};
  // Parents are told in the process's own numbers, which are ours where its own pid is.
  if (live.segment.alive() && live.segment.liveness.viewer_pid > 0) {
    live.segment.origin = process_origin(live.segment.liveness.viewer_pid);
    live.parent_pid = live.segment.origin.parent_pid;
  }
  if (live.segment.liveness.viewer_pid == static_cast<int>(snapshot.pid) && snapshot.parent_pid > 1) {
    live.parent_pid = static_cast<int>(snapshot.parent_pid);
  }
  if (live.parent_pid > 0) live.parent_name = name_of_process(live.parent_pid);
  LiveSegment* kept = &segments_.emplace(path, std::move(live)).first->second;
  read_again(kept, path);
  recall_refusals(kept);
}

// Of a process that was there before us only the end of its log is read; why it was refused should be seen all the
// same.
void LiveSegments::recall_refusals(LiveSegment* live) {
  for (const wire::DeviceSnapshot& device : live->segment.snapshot.devices) {
    const uint64_t when_ns = device.gauges.last_refused_monotonic_ns;
    if (device.gauges.refused_count == 0 || when_ns == 0) continue;
    if (!live->tail.empty() && live->tail.front().monotonic_ns <= when_ns) continue;
    new_events_.push_back({last_refusal(device.gauges), live->origin});
  }
}

void LiveSegments::read_again(LiveSegment* live, const std::string& path) {
  if (live->settled) return;
  int error_number = 0;
  // Asked before the reading: what a dying writer still finished is then read.
  live->segment.liveness = live->reader.liveness();
  const bool dead = live->segment.liveness.liveness != wire::Liveness::kAlive;
  if (!dead) live->seen_alive = true;
  const wire::ReadError error =
      live->reader.snapshot(&live->segment.snapshot, &error_number, wire::SegmentReader::Counters::kLeftOut);
  if (error != wire::ReadError::kNone) {
    unreadable_[path] = read_failure(path, error, error_number);
    return;
  }
  read_events(live, live->ring ? live->ring->position() : 0);
  if (!dead) return;
  live->settled = true;
  const uint64_t ended_ns = live->segment.snapshot.ended_realtime_ns;
  live->segment.dead_since_ns = ended_ns != 0      ? ended_ns
                                : live->seen_alive ? realtime_ns_
                                                   : found_dead_ns(path, realtime_ns_);
}

void LiveSegments::read_events(LiveSegment* live, uint64_t claimed_before) {
  const wire::SegmentSnapshot& snapshot = live->segment.snapshot;
  const uint64_t head = snapshot.events_claimed;
  if (live->ring && head == claimed_before) return;
  if (!live->ring || head - claimed_before > kMostEventsALook) {
    const uint64_t wanted = live->ring ? kMostEventsALook : kTailEvents;
    const uint64_t first = head > wanted ? head - wanted : 0;
    if (live->ring && first > claimed_before) skipped_events_ += first - claimed_before;
    live->ring = live->reader.ring(first, snapshot.events_dropped);
  }
  const bool dead = live->segment.liveness.liveness != wire::Liveness::kAlive;
  gpucap_event raw;
  for (uint64_t count = 0; count < kMostEventsALook; ++count) {
    if (live->ring->next(dead, &raw) != wire::RingStatus::kEvent) break;
    new_events_.push_back({raw, live->origin});
    live->tail.push_back(raw);
    if (live->tail.size() > kTailEvents) live->tail.pop_front();
  }
}

}  // namespace gpucap::tools
