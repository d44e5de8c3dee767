#include "shim/core/visible_devices.h"

#include <cstddef>

namespace gpucap::core {
namespace {

constexpr int kNobody = -1;      // names no device: the list ends here
constexpr int kInstance = -2;    // a MIG instance, of which the machine's list knows nothing
constexpr int kMostNamed = 256;  // entries; a longer list has named a device twice on any machine that there is

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool starts_with(std::string_view text, std::string_view prefix) {
  if (text.size() < prefix.size()) return false;
  for (size_t i = 0; i < prefix.size(); ++i)
    if (lower(text[i]) != lower(prefix[i])) return false;
  return true;
}

bool is_instance(std::string_view uuid) { return starts_with(uuid, "MIG-"); }

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

int find_number(std::string_view entry, size_t count) {
  size_t number = 0;
  for (const char c : entry) {
    if (c < '0' || c > '9') return kNobody;
    number = number * 10 + static_cast<size_t>(c - '0');
    if (number >= count) return kNobody;
  }
  return entry.empty() ? kNobody : static_cast<int>(number);
}

// The beginning of a UUID has to fit one device alone.
int find_uuid(std::span<const std::string_view> machine, std::string_view prefix) {
  int found = kNobody;
  for (size_t i = 0; i < machine.size(); ++i) {
    if (!starts_with(machine[i], prefix)) continue;
    if (found != kNobody) return kNobody;
    found = static_cast<int>(i);
  }
  return found;
}

int find(std::span<const std::string_view> machine, std::string_view entry) {
  constexpr size_t kPrefix = 4;  // "GPU-", "MIG-"
  if (entry.size() <= kPrefix) return find_number(entry, machine.size());
  if (starts_with(entry, "GPU-")) return find_uuid(machine, entry);
  return is_instance(entry) ? kInstance : find_number(entry, machine.size());
}

}  // namespace

int visible_ordinal(std::span<const std::string_view> machine, std::string_view device, const char* visible) {
  if (device.empty()) return kNotVisible;
  const bool instance = is_instance(device);
  const int wanted = instance ? kInstance : find_uuid(machine, device);
  if (wanted == kNobody) return kNotVisible;
  if (visible == nullptr) return instance ? 0 : wanted;
  int named[kMostNamed];
  int count = 0;
  int ordinal = kNotVisible;
  for (std::string_view rest = visible; count < kMostNamed;) {
    const size_t comma = rest.find(',');
    const std::string_view entry = trim(rest.substr(0, comma));
    const int found = find(machine, entry);
    if (found == kNobody) break;
    for (int i = 0; i < count; ++i)
      if (found != kInstance && named[i] == found) return kNotVisible;
    if (found == wanted && ordinal == kNotVisible && (!instance || starts_with(device, entry))) ordinal = count;
    named[count++] = found;
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return ordinal;
}

}  // namespace gpucap::core
