// The limit that is to be set: see set_limit.h.
#include "tools/gpucap/set_limit.h"

#include "tools/gpucap/settings.h"

namespace gpucap::tools {

std::optional<std::string> NewLimit::parse(const std::string& limit, const std::string& gpu) {
  if (!parse_gpu_name(gpu, false, &gpu_)) return "--gpu: '" + gpu + "' names no GPU: give a number or a UUID";
  none_ = limit == "none";
  ordinals_ = gpu_.kind == GpuName::Kind::kOrdinal;
  if (none_) return std::nullopt;
  if (limit.find_first_not_of(" \t") == std::string::npos) {
    return "--limit is empty: give a size such as 4G, or none to watch only";
  }
  if (auto problem = problem_of_limit(limit, &rules_)) return problem;
  for (int i = 0; i < rules_.count(); ++i) {
    const core::LimitRule& rule = rules_.rule(i);
    relative_ = relative_ || rule.value.relative;
    ordinals_ = ordinals_ || rule.key == core::LimitRule::Key::kOrdinal;
    if (rule.key != core::LimitRule::Key::kEveryDevice && gpu_.kind != GpuName::Kind::kUnnamed) {
      return "name the GPU once: with --gpu, or in --limit";
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> NewLimit::for_device(uint32_t ordinal, const std::string& uuid, uint64_t physical_bytes) const {
  if (!gpu_.matches(ordinal, uuid)) return std::nullopt;
  if (none_) return core::kNoLimit;
  const uint64_t bytes = rules_.for_device(ordinal, uuid, physical_bytes);
  if (bytes == core::kNoLimit) return std::nullopt;
  return bytes;
}

}  // namespace gpucap::tools
