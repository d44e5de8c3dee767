// The half of `gpucap set` that changes a group's budget.
#pragma once

#include <optional>

#include "tools/gpucap/command.h"
#include "tools/gpucap/set_command.h"
#include "tools/gpucap/set_limit.h"

namespace gpucap::tools {

std::optional<Refusal> set_group(const SetOptions& options, const NewLimit& limit);

}  // namespace gpucap::tools
