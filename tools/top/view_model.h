// Everything that a screen shows, as plain values: filled by the collector from segments, NVML and the event log, or by
// a test from thin air. Nothing in it points to a file or a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpucap::tools {

// A GPU of the machine, or one that only a process's figures tell of (no NVML: its total may then come from them).
struct CardView {
  uint32_t number = 0;  // NVML's, else by order of appearance
  std::string name;
  std::optional<uint64_t> total_bytes;
  std::optional<uint64_t> used_bytes;  // of the whole card by everybody; only NVML knows
  uint64_t reserved_bytes = 0;         // by the driver for itself, in nobody's use
  uint64_t data_bytes = 0;             // of processes under gpucap, less the driver's share
  uint64_t driver_bytes = 0;           // the driver's share in those processes
  uint64_t managed_bytes = 0;          // part of the data that the card may not hold at this moment
  uint64_t caps_bytes = 0;             // sum of the caps
  size_t processes = 0;
  size_t capped_processes = 0;
};

// One process on one card.
struct ProcessRow {
  std::string key;  // the same at every look
  int pid = 0;
  int parent_pid = 0;  // 0 if not known here
  std::string parent_name;
  std::string container;  // its id, empty if in none
  std::string user;
  std::string group;
  std::string command;
  uint32_t card = 0;     // CardView::number
  uint32_t ordinal = 0;  // the process's own number of it
  uint64_t used_bytes = 0;
  uint64_t peak_bytes = 0;
  std::optional<uint64_t> limit_bytes;
  std::optional<uint64_t> policy_limit_bytes;
  std::optional<uint64_t> group_limit_bytes;
  uint64_t group_used_bytes = 0;
  uint64_t physical_bytes = 0;
  int64_t driver_bytes = 0;
  int64_t live_count = 0;
  uint64_t refused_count = 0;
  uint64_t waiting_count = 0;
  uint64_t age_seconds = 0;
  bool alive = true;
  std::string how_ended;  // "ended", "killed"
  std::optional<uint64_t> ended_seconds_ago;
  bool can_signal = false;  // its pid is one of ours to address
  bool can_limit = false;   // we are its owner or root, and its library listens
};

struct EventLine {
  std::string time;  // of the day
  int pid = 0;
  uint32_t card = 0;
  uint8_t operation = 0;
  uint8_t refused_by = 0;
  std::string call;
  uint64_t bytes = 0;
  std::optional<uint64_t> used_after_bytes;
  std::string result;  // empty for success
};

struct ApiLine {
  std::string name;
  uint64_t calls = 0;
  uint64_t refused = 0;
  uint64_t bytes = 0;
};

struct SizeClassLine {
  uint64_t at_most_bytes = 0;
  uint64_t blocks = 0;
  uint64_t bytes = 0;
};

struct ProcessDetails {
  std::string key;  // of the row that they belong to
  std::string card_name;
  std::string version;
  std::string run_id;
  std::string limit_source;
  std::string truth;
  std::string on_limit;
  int pid_in_namespace = 0;
  int64_t linear_bytes = 0, array_bytes = 0, pool_bytes = 0, vmm_bytes = 0, managed_bytes = 0, reserved_bytes = 0;
  std::optional<uint64_t> peak_seconds_ago;
  uint64_t refused_bytes = 0;
  uint64_t failed_count = 0;
  uint64_t observed_count = 0;
  uint64_t observed_bytes = 0;
  uint64_t waits_count = 0;
  uint64_t waits_ns = 0;
  uint64_t events_written = 0;
  uint64_t events_lost = 0;  // overwritten or dropped before anybody looked
  std::vector<ApiLine> apis;
  std::vector<SizeClassLine> sizes;
  uint64_t blocks_known = 0;
  std::vector<EventLine> refusals;  // latest first
};

struct ScreenModel {
  std::string time;  // of the day
  std::vector<CardView> cards;
  std::string nvml_trouble;  // empty: the cards' use is known
  std::vector<ProcessRow> rows;
  std::vector<uint64_t> history;  // used bytes of the selected row, oldest first, one a look
  double seconds_per_look = 1;
  std::vector<EventLine> events;  // oldest first, already chosen by the scope
  uint64_t events_skipped = 0;    // not shown since they came too fast
  std::optional<ProcessDetails> details;
  std::vector<std::string> unreadable;
  std::string advice;  // where it looked and what to do, for when there is nothing
};

}  // namespace gpucap::tools
