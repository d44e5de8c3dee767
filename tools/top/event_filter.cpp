// Which events are wanted: see event_filter.h.
#include "tools/top/event_filter.h"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tools/common/names.h"
#include "tools/common/nearest.h"

namespace gpucap::tools {
namespace {

bool matches(const std::string& glob, const std::string& name) {
  return !name.empty() && fnmatch(glob.c_str(), name.c_str(), 0) == 0;
}

bool same_gpu(const std::string& wanted, const EventRecord& event) {
  if (wanted.find_first_not_of("0123456789") == std::string::npos) return wanted == std::to_string(event.gpu);
  return !event.gpu_uuid.empty() && event.gpu_uuid.compare(0, wanted.size(), wanted) == 0;
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return result;
}

std::vector<std::string> words_of(const std::vector<std::string>& texts) {
  std::vector<std::string> words;
  for (const std::string& text : texts) {
    for (size_t from = 0; from <= text.size();) {
      const size_t comma = std::min(text.find(',', from), text.size());
      words.push_back(text.substr(from, comma - from));
      from = comma + 1;
    }
  }
  return words;
}

std::string unknown(const char* what, const std::string& word, const std::vector<std::string>& known) {
  std::string line = std::string("unknown ") + what + " '" + wire::clean_text(word) + "'";
  const std::string meant = nearest(word, known);
  if (!meant.empty()) return line + "; did you mean " + meant + "?";
  return line;
}

}  // namespace

bool EventFilter::wants(const EventRecord& event) const {
  const auto any = [](const std::vector<std::string>& all, const auto& agrees) {
    return all.empty() || std::any_of(all.begin(), all.end(), agrees);
  };
  if (!any(gpus, [&](const std::string& gpu) { return same_gpu(gpu, event); })) return false;
  if (!any(apis, [&](const std::string& api) { return matches(api, event.api) || matches(api, event.origin); }))
    return false;
  if (event.bytes < at_least_bytes || event.bytes > at_most_bytes) return false;
  if (!operations.empty() && operations.count(event.operation) == 0) return false;
  if (results.empty() && !any_error) return true;
  return results.count(event.result) != 0 || (any_error && event.result != 0);
}

bool EventFilter::add_sizes(const std::vector<std::string>& texts, std::string* error) {
  for (const std::string& text : texts) {
    const std::string bound = text.substr(0, 2);
    const bool has_bound = bound == ">=" || bound == "<=";
    const auto bytes = parse_bytes(std::string_view(text).substr(has_bound ? 2 : 0));
    if (!bytes) {
      *error =
          "--size '" + wire::clean_text(text) + "' cannot be understood: write '>=64M', '<=1G', or a size by itself";
      return false;
    }
    if (bound != "<=") at_least_bytes = std::max(at_least_bytes, *bytes);
    if (bound != ">=") at_most_bytes = std::min(at_most_bytes, *bytes);
  }
  return true;
}

bool EventFilter::add_operations(const std::vector<std::string>& texts, std::string* error) {
  const std::vector<std::string> names = operation_names();
  for (const std::string& word : words_of(texts)) {
    const auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end()) {
      *error = unknown("operation", word, names) + " (one of";
      for (const std::string& name : names) *error += " " + name;
      *error += ")";
      return false;
    }
    operations.insert(static_cast<uint8_t>(GPUCAP_OP_CHARGE + (found - names.begin())));
  }
  return true;
}

bool EventFilter::add_results(const std::vector<std::string>& texts, std::string* error) {
  std::vector<std::string> names = result_names();
  for (const std::string& word : words_of(texts)) {
    int32_t number = 0;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), number);
    if (word == "error") {
      any_error = true;
      continue;
    }
    if (parsed.ec == std::errc() && parsed.ptr == word.data() + word.size()) {
      results.insert(number);
      continue;
    }
    std::string name = word == "success" ? "CUDA_SUCCESS" : upper(word);
    if (name.compare(0, 5, "CUDA_") != 0) name = "CUDA_ERROR_" + name;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      *error = unknown("result", name, names);
      return false;
    }
    results.insert(result_number(*found));
  }
  return true;
}

std::optional<uint64_t> parse_bytes(std::string_view text) {
  double number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (parsed.ec != std::errc() || number < 0 || !std::isfinite(number)) return std::nullopt;
  std::string unit = upper(text.substr(static_cast<size_t>(parsed.ptr - text.data())));
  const bool decimal = unit.size() == 2 && unit[1] == 'B';
  if (unit.size() == 3 && unit.substr(1) == "IB") unit.resize(1);
  if (decimal) unit.resize(1);
  const size_t power = unit.empty() || unit == "B" ? 0 : std::string_view("KMGT").find(unit) + 1;
  if (power == 0 && !(unit.empty() || unit == "B")) return std::nullopt;  // npos + 1
  const double bytes = number * std::pow(decimal ? 1000.0 : 1024.0, static_cast<double>(power));
  if (bytes >= 9223372036854775808.0) return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

}  // namespace gpucap::tools
