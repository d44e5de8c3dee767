// The event log of all segments, merged by time, pass after pass. Reads only; the caller decides when to look again and
// where the lines go.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tools/common/scan.h"

namespace gpucap::tools {

struct EventRecord {
  uint64_t time_ns = 0;  // realtime
  int pid = 0;
  uint32_t thread = 0;
  uint32_t gpu = 0;
  std::string gpu_uuid;  // empty if the process does not tell
  uint8_t operation = 0;
  uint8_t kind = 0;
  uint8_t refused_by = 0;
  std::string api;
  std::string origin;  // empty if none
  uint64_t bytes = 0;
  int32_t result = 0;
  uint64_t address = 0;
  uint64_t used_after_bytes = 0;
  uint32_t latency_ns = 0;
};
std::string event_as_text(const EventRecord& event);
std::string events_csv_header();
std::string event_as_csv(const EventRecord& event);
bool event_bytes_known(const EventRecord& event);  // a limit that was taken away has none

struct EventLoss {
  int pid = 0;
  std::string command;
  uint64_t events = 0;  // since the last time it was told
};
std::string loss_as_text(const EventLoss& loss);

class EventLog {
 public:
  explicit EventLog(std::set<int> pids) : pids_(std::move(pids)) {}

  struct Pass {
    std::vector<EventRecord> events;  // by time
    std::vector<EventLoss> losses;
    std::vector<std::string> unreadable;  // each file is named once
  };
  // Everything new since the last pass, of new segments too.
  Pass next_pass(const Directories& directories);

  [[nodiscard]] bool has_matched() const { return has_matched_; }  // any segment of the wanted pids so far

 private:
  struct Source {
    wire::SegmentReader reader;
    wire::FileRingReader ring;
    int pid;
    std::string command;
    uint64_t created_realtime_ns;
    uint64_t created_monotonic_ns;
    uint64_t capacity;
    uint64_t lost_told = 0;
    std::vector<std::string> gpu_uuids;  // by the process's own numbers, empty where not told yet
  };
  void open_new(const Directories& directories, Pass* pass);
  bool drain(Source* source, Pass* pass);  // false: nothing will ever come from it again
  static void learn_gpus(Source* source);

  std::set<int> pids_;  // empty: all
  bool has_matched_ = false;
  std::map<std::string, Source> sources_;  // by path
  std::set<std::string> finished_;         // paths that are not to be opened again
};

}  // namespace gpucap::tools
