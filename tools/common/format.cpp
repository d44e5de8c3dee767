// Figures as text: see format.h.
#include "tools/common/format.h"

#include <array>
#include <cstdio>
#include <ctime>

namespace gpucap::tools {
namespace {

template <class... Args>
std::string printed(const char* format, Args... args) {
  std::array<char, 96> text;
  const int length = std::snprintf(text.data(), text.size(), format, args...);
  return {text.data(), length < 0 ? 0 : static_cast<size_t>(length)};
}

}  // namespace

std::string human_bytes(uint64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1000) return printed("%u B", static_cast<unsigned>(bytes));
  auto value = static_cast<double>(bytes) / 1024;
  size_t unit = 1;
  // What would be printed as 1024 is one of the next unit.
  for (; value >= 1023.5 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return printed("%.*f %s", decimals, value, kUnits[unit]);
}

std::string human_bytes(int64_t bytes) {
  if (bytes >= 0) return human_bytes(static_cast<uint64_t>(bytes));
  return "-" + human_bytes(uint64_t{0} - static_cast<uint64_t>(bytes));
}

std::string human_duration(uint64_t seconds) {
  const auto part = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  if (seconds < 60) return printed("%llus", part(seconds));
  if (seconds < 3600) return printed("%llum%02llus", part(seconds / 60), part(seconds % 60));
  if (seconds < 86400) return printed("%lluh%02llum", part(seconds / 3600), part(seconds / 60 % 60));
  return printed("%llud%02lluh", part(seconds / 86400), part(seconds / 3600 % 24));
}

std::string human_latency(uint64_t nanoseconds) {
  constexpr std::array kUnits = {"ns", "us", "ms", "s"};
  if (nanoseconds < 1000) return printed("%u ns", static_cast<unsigned>(nanoseconds));
  auto value = static_cast<double>(nanoseconds) / 1000;
  size_t unit = 1;
  for (; value >= 999.5 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return printed("%.*f %s", decimals, value, kUnits[unit]);
}

std::string percent_of(uint64_t used_bytes, uint64_t limit_bytes) {
  if (limit_bytes == 0) return "-";
  // In two steps, or large figures would overflow; a percentage with more than four digits says nothing.
  const double percent = static_cast<double>(used_bytes) / static_cast<double>(limit_bytes) * 100;
  if (used_bytes < limit_bytes && percent >= 100) return "99";
  return percent > 9999 ? ">9999" : printed("%u", static_cast<unsigned>(percent));
}

std::string local_time(uint64_t realtime_ns) {
  const auto seconds = static_cast<time_t>(realtime_ns / 1000000000);
  std::tm parts = {};
  if (localtime_r(&seconds, &parts) == nullptr) parts = {};
  std::array<char, 32> text;
  const size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return std::string(text.data(), length) + printed(".%06u", static_cast<unsigned>(realtime_ns / 1000 % 1000000));
}

std::string hexadecimal(uint64_t value) { return printed("0x%llx", static_cast<unsigned long long>(value)); }

std::string gpu_uuid_text(const uint8_t (&uuid)[16]) {
  std::string text = "GPU-";
  for (size_t i = 0; i < std::size(uuid); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += printed("%02x", static_cast<unsigned>(uuid[i]));
  }
  return text;
}

}  // namespace gpucap::tools
