// The segments of the screen, kept open from look to look: of 200 processes only what can have changed is read again.
// Reads only, apart from the sweep that its caller makes. Used by the collector alone.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/common/scan.h"
#include "wire/segment_reader.h"

namespace gpucap::tools {

// What an event needs to be told, also after its segment was swept.
struct EventOrigin {
  int pid = 0;
  uint64_t created_realtime_ns = 0;
  uint64_t created_monotonic_ns = 0;
  std::vector<std::string> api_names;
  std::vector<uint32_t> cards;  // numbers by ordinal; filled by the collector
};
struct TailEvent {
  gpucap_event raw = {};
  std::shared_ptr<const EventOrigin> origin;
  [[nodiscard]] uint64_t realtime_ns() const {
    return origin->created_realtime_ns + (raw.monotonic_ns - origin->created_monotonic_ns);
  }
};

inline constexpr uint64_t kUseUnknown = UINT64_MAX;  // in used_after of an event that was not read from a log
// The latest refusal as the gauges tell of it, for where the log has lost it.
gpucap_event last_refusal(const gpucap_device& gauges);

struct LiveSegment {
  std::string directory;
  std::string name;
  wire::SegmentReader reader;
  Segment segment;  // counters by entry point are left out
  uint32_t owner_uid = 0;
  std::shared_ptr<EventOrigin> origin;
  std::optional<wire::FileRingReader> ring;
  std::deque<gpucap_event> tail;  // its own latest events
  int parent_pid = 0;             // as we number it, 0 if unknown
  std::string parent_name;
  bool settled = false;     // dead, and read since
  bool seen_alive = false;  // so the moment of its death is known, to a look
};

class LiveSegments {
 public:
  explicit LiveSegments(std::set<int> pids) : pids_(std::move(pids)) {}

  // Looks again. New events are in new_events() until the next look.
  void look(const Directories& directories);

  [[nodiscard]] const std::map<std::string, LiveSegment>& segments() const { return segments_; }  // by path
  [[nodiscard]] LiveSegment* find(const std::string& path);
  [[nodiscard]] const std::vector<TailEvent>& new_events() const { return new_events_; }  // by time
  [[nodiscard]] uint64_t skipped_events() const { return skipped_events_; }  // that came too fast to be read, ever
  [[nodiscard]] std::vector<std::string> unreadable() const;
  [[nodiscard]] uint64_t realtime_ns() const { return realtime_ns_; }
  [[nodiscard]] uint64_t monotonic_ns() const { return monotonic_ns_; }

 private:
  void open_new(const SegmentDirectory& directory, const std::string& name, const std::string& path);
  void read_again(LiveSegment* live, const std::string& path);
  void read_events(LiveSegment* live, uint64_t claimed_before);
  void recall_refusals(LiveSegment* live);

  std::set<int> pids_;  // empty: all
  std::map<std::string, LiveSegment> segments_;
  std::map<std::string, std::string> unreadable_;  // reason by path
  std::set<std::string> unwanted_;                 // of other pids
  std::vector<TailEvent> new_events_;
  uint64_t skipped_events_ = 0;
  uint64_t realtime_ns_ = 0;
  uint64_t monotonic_ns_ = 0;
};

}  // namespace gpucap::tools
