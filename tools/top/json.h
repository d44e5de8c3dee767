// The machine-readable forms, a stable interface described in docs/gpucap-top.md. Pure: what was read in, text out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/common/scan.h"
#include "tools/top/counts.h"
#include "tools/top/events.h"
#include "tools/top/totals.h"

namespace gpucap::tools {

// 2: everything of 1, and more. See docs/gpucap-top.md.
inline constexpr int kJsonSchema = 2;

// One object, of every process in the scan. Indented for people, or one line.
std::string scan_as_json(const Scan& scan, const Directories& directories, bool indented);
std::string totals_as_json(const std::vector<Total>& totals, const std::string& by, const Scan& scan,
                           const Directories& directories, bool indented);

std::string event_as_json(const EventRecord& event);
std::string loss_as_json(const EventLoss& loss);
std::string end_as_json(uint64_t shown, uint64_t lost);
std::string counts_as_json(const std::vector<CountedApi>& apis, uint64_t events, uint64_t lost);

}  // namespace gpucap::tools
