// What `gpucap set --limit` was given: one size, or one a device in the grammar of GPUCAP_LIMIT, or none. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shim/core/limits.h"
#include "tools/gpucap/gpu_name.h"

namespace gpucap::tools {

class NewLimit {
 public:
  // What is wrong with the texts, or nothing.
  std::optional<std::string> parse(const std::string& limit, const std::string& gpu);

  // What the device is to have; nothing where it is to stay as it is.
  [[nodiscard]] std::optional<uint64_t> for_device(uint32_t ordinal, const std::string& uuid,
                                                   uint64_t physical_bytes) const;
  [[nodiscard]] const GpuName& gpu() const { return gpu_; }
  // Whether the outcome depends on how large a card is, and on which number it has.
  [[nodiscard]] bool needs_physical() const { return relative_; }
  [[nodiscard]] bool needs_ordinals() const { return ordinals_; }

 private:
  bool none_ = false;
  bool relative_ = false;
  bool ordinals_ = false;
  core::LimitRules rules_;
  GpuName gpu_;
};

}  // namespace gpucap::tools
