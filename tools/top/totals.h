// Sums over the living processes by user, group or command: --by. Pure: a scan in, sums and text out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/scan.h"

namespace gpucap::tools {

enum class TotalsBy : uint8_t { kUser, kGroup, kCommand };
std::optional<TotalsBy> totals_by(const std::string& word);  // "user", "group", "command"

struct Sums {
  uint64_t processes = 0;
  uint64_t used_bytes = 0;
  std::optional<uint64_t> limit_bytes;  // of the caps; none if somebody has none
  std::optional<uint64_t> group_limit_bytes;
  uint64_t largest_peak_bytes = 0;  // of one process on one card: peaks of several do not add up
  uint64_t refused_count = 0;
  uint64_t waiting_count = 0;
  uint64_t waiting_bytes = 0;
};

struct Total {
  std::string name;  // empty: those in no group
  Sums sums;
  std::map<std::string, Sums> gpus;  // by UUID
};
// Largest use first. A process counts once in `sums`, and once on each card that it uses.
std::vector<Total> totals(const Scan& scan, TotalsBy by);

// What a process is called in a sum: its program's name, and for an interpreter that of the script or module.
std::string program_name(const std::vector<std::string>& command);

std::vector<std::string> totals_as_table(const std::vector<Total>& totals, TotalsBy by);
std::string totals_as_csv(const std::vector<Total>& totals, TotalsBy by, bool header);

}  // namespace gpucap::tools
