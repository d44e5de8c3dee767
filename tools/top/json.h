// The machine-readable forms, a stable interface described in docs/gpucap-top.md. Pure: what was read in, text out.
#pragma once

#include <cstdint>
#include <string>

#include "tools/common/scan.h"
#include "tools/top/events.h"

namespace gpucap::tools {

inline constexpr int kJsonSchema = 1;

// One object. Without `all`, living processes only. Indented for people, or one line.
std::string scan_as_json(const Scan& scan, const Directories& directories, bool all, bool indented);

std::string event_as_json(const EventRecord& event);
std::string loss_as_json(const EventLoss& loss);
std::string end_as_json(uint64_t shown, uint64_t lost);

}  // namespace gpucap::tools
