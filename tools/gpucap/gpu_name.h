// How people name a card on the command line: any, a number, or a UUID or its beginning. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace gpucap::tools {

struct GpuName {
  enum class Kind { kUnnamed, kAny, kOrdinal, kUuid };
  Kind kind = Kind::kUnnamed;
  uint32_t ordinal = 0;
  std::string uuid;  // as it was written

  // Unnamed and any are every card.
  [[nodiscard]] bool matches(uint32_t device_ordinal, const std::string& device_uuid) const;
};

// Empty text: unnamed. False if it is none of these; `any` counts as one only where it is allowed.
bool parse_gpu_name(const std::string& text, bool any_allowed, GpuName* name);

// "GPU-01234567-89ab-cdef-0123-456789abcdef", as CUDA writes it.
std::string uuid_as_text(const uint8_t (&uuid)[16]);

// By the digits alone: CUDA writes the UUID of a MIG instance like a card's, NVML with a prefix of its own.
bool same_card(const std::string& uuid, const std::string& other);

}  // namespace gpucap::tools
