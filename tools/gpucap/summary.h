// The line that ends a run: what its processes took at most. Collected while they run, since segments of processes that
// ended long ago are swept.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tools/common/scan.h"

namespace gpucap::tools {

class RunSummary {
 public:
  explicit RunSummary(std::string run_id) : run_id_(std::move(run_id)) {}

  void note(const Scan& scan);  // takes up what belongs to the run
  // "python train.py: peak 3.91 GiB of 4.00 GiB on GPU 0, 3 refusals"
  [[nodiscard]] std::string text(const std::string& command) const;

 private:
  struct Device {
    uint64_t peak_bytes = 0;
    std::optional<uint64_t> limit_bytes;  // of the process with the largest peak
    uint64_t refused_count = 0;
  };
  std::string run_id_;
  std::map<std::string, std::map<uint32_t, Device>> processes_;  // by file, then by device
};

}  // namespace gpucap::tools
