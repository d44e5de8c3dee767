// Figures as people read them. Pure: no locale, no clock; used by both programs; JSON takes no figure from here.
#pragma once

#include <cstdint>
#include <string>

namespace gpucap::tools {

// "512 B", "3.21 GiB", "51.8 MiB", "518 MiB": three digits, powers of 1024. Negative figures keep their sign.
std::string human_bytes(int64_t bytes);
std::string human_bytes(uint64_t bytes);

// "12s", "3m04s", "2h05m", "4d07h".
std::string human_duration(uint64_t seconds);

// "850 ns", "12.3 us", "4.21 ms", "1.05 s": three digits.
std::string human_latency(uint64_t nanoseconds);

// Whole percent, rounded down, so that 100 means the cap is reached; "-" of a cap of nothing.
std::string percent_of(uint64_t used_bytes, uint64_t limit_bytes);

// Local time to the microsecond: "2026-01-31 12:34:56.123456".
std::string local_time(uint64_t realtime_ns);

std::string hexadecimal(uint64_t value);  // "0x7f..."

std::string gpu_uuid_text(const uint8_t (&uuid)[16]);  // "GPU-01234567-89ab-..."

}  // namespace gpucap::tools
