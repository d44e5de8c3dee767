// What ends a run: what its processes took at most, as a line and as JSON. Collected while they run, since segments of
// processes that ended long ago are swept.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/scan.h"

namespace gpucap::tools {

// One card as all processes of a run saw it: the largest of their peaks, and the sums of what happened to them.
struct RunDevice {
  uint32_t ordinal = 0;  // as the process with the largest peak numbers it
  std::string uuid;
  std::string name;
  uint64_t physical_bytes = 0;
  uint64_t peak_bytes = 0;
  std::optional<uint64_t> limit_bytes;  // of that process, when it was last seen
  uint32_t limit_source = 0;
  uint32_t on_limit = 0;
  std::optional<uint64_t> group_limit_bytes;
  uint64_t processes = 0;
  uint64_t refused_count = 0, refused_bytes = 0;
  uint64_t observed_count = 0, observed_bytes = 0;
  uint64_t waits_count = 0, waits_ns = 0;
  uint64_t failed_count = 0;
  // Of an observed process: the smallest limit that would have let everything through, in whole MiB.
  [[nodiscard]] std::optional<uint64_t> suggested_limit_bytes() const;
};

// What the launcher itself knows of a run.
struct RunFacts {
  std::vector<std::string> command;
  std::string run_id;
  std::string group;
  uint64_t started_realtime_ns = 0;
  uint64_t duration_ns = 0;
  uint64_t waited_ns = 0;  // for --wait, before the start
  int wait_status = 0;     // as waitpid gives it
};

class RunSummary {
 public:
  explicit RunSummary(std::string run_id) : run_id_(std::move(run_id)) {}

  void note(const Scan& scan);  // takes up what belongs to the run
  // "python train.py: peak 3.91 GiB of 4.00 GiB on GPU 0, 3 refusals"; a second line where there is a suggestion.
  [[nodiscard]] std::string text(const std::string& command) const;
  // One JSON object without line breaks; docs/gpucap.md has the schema.
  [[nodiscard]] std::string json(const RunFacts& facts) const;

  [[nodiscard]] std::vector<RunDevice> devices() const;

 private:
  struct Process {
    std::vector<RunDevice> devices;
  };
  [[nodiscard]] uint64_t processes_with_gpus() const;

  std::string run_id_;
  std::map<std::string, Process> processes_;  // by file
};

}  // namespace gpucap::tools
