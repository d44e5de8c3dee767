#include "shim/core/limits.h"

#include "shim/core/text.h"

namespace gpucap::core {
namespace {

bool starts_with_no_case(std::string_view text, std::string_view prefix) {
  if (text.size() < prefix.size()) return false;
  for (size_t i = 0; i < prefix.size(); ++i)
    if (lower(text[i]) != lower(prefix[i])) return false;
  return true;
}

// Whether the device's UUID begins as the rule says. CUDA writes the UUID of a MIG instance like a card's and NVML does
// not, so the prefix before the digits does not decide; the digits alone are unique.
bool same_uuid(std::string_view uuid_text, std::string_view beginning) {
  constexpr size_t kPrefix = 4;  // "GPU-" or "MIG-"
  return uuid_text.size() > kPrefix && beginning.size() > kPrefix &&
         starts_with_no_case(uuid_text.substr(kPrefix), beginning.substr(kPrefix));
}

bool is_uuid_text(std::string_view text) {
  if (!starts_with_no_case(text, "GPU-") && !starts_with_no_case(text, "MIG-")) return false;
  if (text.size() < 8 || text.size() >= kMaxUuidText) return false;
  for (const char c : text.substr(4)) {
    const char l = lower(c);
    if (!((l >= '0' && l <= '9') || (l >= 'a' && l <= 'z') || l == '-' || l == '/')) return false;
  }
  return true;
}

void copy_part(std::string_view part, LimitError* error) {
  const size_t n = part.size() < sizeof(error->part) - 1 ? part.size() : sizeof(error->part) - 1;
  for (size_t i = 0; i < n; ++i) {
    const unsigned char c = static_cast<unsigned char>(part[i]);
    error->part[i] = c < 0x20 || c == 0x7f ? '?' : part[i];  // the text goes to a terminal
  }
  error->part[n] = '\0';
}

const char* parse_key(std::string_view key, LimitRule* rule) {
  if (key == "*") return nullptr;
  if (is_uuid_text(key)) {
    rule->key = LimitRule::Key::kUuid;
    for (size_t i = 0; i < key.size(); ++i) rule->uuid[i] = key[i];
    return nullptr;
  }
  if (key.empty() || key.size() > 4) return "names no device (an ordinal, GPU-<uuid>, MIG-<uuid> or *)";
  rule->key = LimitRule::Key::kOrdinal;
  for (const char c : key) {
    if (c < '0' || c > '9') return "names no device (an ordinal, GPU-<uuid>, MIG-<uuid> or *)";
    rule->ordinal = rule->ordinal * 10 + static_cast<uint32_t>(c - '0');
  }
  return nullptr;
}

bool same_key(const LimitRule& a, const LimitRule& b) {
  return a.key == b.key && a.ordinal == b.ordinal && equal_no_case(a.uuid, b.uuid);
}

}  // namespace

const char* LimitRules::add(std::string_view entry, bool only_entry) {
  LimitRule rule;
  std::string_view value = entry;
  const size_t equals = entry.find('=');
  if (equals == std::string_view::npos) {
    if (!only_entry) return "names no device, and stands in a list";
  } else {
    if (const char* reason = parse_key(trim(entry.substr(0, equals)), &rule)) return reason;
    value = entry.substr(equals + 1);
  }
  const SizeError size_error = parse_limit_value(value, &rule.value);
  if (size_error != SizeError::kNone) return to_text(size_error);
  for (int i = 0; i < count_; ++i)
    if (same_key(rules_[i], rule)) return "names a device a second time";
  if (count_ == kMaxLimitRules) return "is one entry too many (64 at most)";
  rules_[count_++] = rule;
  return nullptr;
}

bool LimitRules::parse(std::string_view text, LimitError* error) {
  count_ = 0;
  text = trim(text);
  if (text.empty()) return true;
  const bool only_entry = text.find(',') == std::string_view::npos;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view entry = trim(text.substr(0, comma));
    if (const char* reason = add(entry, only_entry)) {
      copy_part(entry, error);
      error->reason = reason;
      count_ = 0;
      return false;
    }
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

uint64_t LimitRules::for_device(uint32_t ordinal, std::string_view uuid_text, uint64_t physical_bytes) const {
  const LimitRule* best = nullptr;
  for (int i = 0; i < count_; ++i) {
    const LimitRule& rule = rules_[i];
    const bool matches = rule.key == LimitRule::Key::kEveryDevice ||
                         (rule.key == LimitRule::Key::kOrdinal && rule.ordinal == ordinal) ||
                         (rule.key == LimitRule::Key::kUuid && same_uuid(uuid_text, rule.uuid));
    if (matches && (best == nullptr || rule.key > best->key)) best = &rule;
  }
  return best == nullptr ? kNoLimit : best->value.resolve(physical_bytes);
}

}  // namespace gpucap::core
