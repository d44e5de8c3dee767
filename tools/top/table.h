// The table as a pure function: rows and a width in, lines out. No terminal, no clock, no files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/scan.h"

namespace gpucap::tools {

// One process on one device.
struct TableRow {
  bool alive = true;
  int pid = 0;
  std::string user;
  uint32_t gpu = 0;
  uint64_t used_bytes = 0;
  std::optional<uint64_t> limit_bytes;
  uint64_t peak_bytes = 0;
  int64_t driver_bytes = 0;
  int64_t live_count = 0;
  uint64_t refused_count = 0;
  uint64_t age_seconds = 0;
  std::string group;  // empty: none
  uint64_t waiting_count = 0;
  uint64_t waiting_bytes = 0;
  uint64_t waiting_seconds = 0;
  std::string ended;  // "killed 12s ago"; empty of the living
  std::string command;
};

// Each process's active devices: the living by use, largest first, then the dead, the latest first.
std::vector<TableRow> table_rows(const Scan& scan);

// Since the process first used CUDA, up to now or to its end.
uint64_t age_seconds(const Segment& segment, const Scan& scan);

// Header line and rows. Columns that nobody has anything to say in (GROUP, WAITING, ENDED) are left out. No line is
// wider than `width` (0: as wide as need be): the least important columns go first. At most `height` lines (0: all),
// the last of which then says how many rows are missing.
std::vector<std::string> layout_table(const std::vector<TableRow>& rows, size_t width, size_t height);

}  // namespace gpucap::tools
