// Names of cards: see gpu_name.h.
#include "tools/gpucap/gpu_name.h"

#include <string_view>

namespace gpucap::tools {
namespace {

constexpr size_t kPrefix = 4;        // "GPU-", "MIG-"
constexpr size_t kLongestUuid = 40;  // with its prefix

std::string lowered(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::string digits_of(std::string_view uuid) { return uuid.size() <= kPrefix ? "" : lowered(uuid.substr(kPrefix)); }

}  // namespace

bool GpuName::matches(uint32_t device_ordinal, const std::string& device_uuid) const {
  switch (kind) {
    case Kind::kUnnamed:
    case Kind::kAny:
      return true;
    case Kind::kOrdinal:
      return ordinal == device_ordinal;
    case Kind::kUuid: {
      const std::string wanted = digits_of(uuid);
      return digits_of(device_uuid).compare(0, wanted.size(), wanted) == 0;
    }
  }
  return false;
}

bool parse_gpu_name(const std::string& text, bool any_allowed, GpuName* name) {
  *name = {};
  if (text.empty()) return true;
  const std::string low = lowered(text);
  if (low == "any") {
    name->kind = GpuName::Kind::kAny;
    return any_allowed;
  }
  if (low.compare(0, kPrefix, "gpu-") == 0 || low.compare(0, kPrefix, "mig-") == 0) {
    name->kind = GpuName::Kind::kUuid;
    name->uuid = text;
    const std::string digits = digits_of(text);
    return !digits.empty() && text.size() <= kLongestUuid &&
           digits.find_first_not_of("0123456789abcdef-") == std::string::npos;
  }
  name->kind = GpuName::Kind::kOrdinal;
  for (const char c : text) {
    if (c < '0' || c > '9' || text.size() > 4) return false;
    name->ordinal = name->ordinal * 10 + static_cast<uint32_t>(c - '0');
  }
  return true;
}

std::string uuid_as_text(const uint8_t (&uuid)[16]) {
  std::string text = "GPU-";
  for (size_t i = 0; i < sizeof(uuid); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += "0123456789abcdef"[uuid[i] >> 4];
    text += "0123456789abcdef"[uuid[i] & 15];
  }
  return text;
}

bool same_card(const std::string& uuid, const std::string& other) {
  return !digits_of(uuid).empty() && digits_of(uuid) == digits_of(other);
}

}  // namespace gpucap::tools
