// Decides before the start whether the cap can be put on a program at all. Fails closed: what cannot be known is
// refused.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/gpucap/command.h"

namespace gpucap::tools {

// `path` is what will be executed, `arguments` the command's words with the command first. The environment must be the
// child's already.
std::optional<Refusal> check_preload(const std::string& path, const std::vector<std::string>& arguments,
                                     const std::string& library);

}  // namespace gpucap::tools
