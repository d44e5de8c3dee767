// Events counted by entry point: what `gpucap-top events -c` prints. Memory does not grow with time: latencies go into
// a histogram of fixed size. Pure: events in, figures and text out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/top/events.h"

namespace gpucap::tools {

// Latencies to within one in 128, from nanoseconds to the four seconds at which the log saturates.
class LatencyHistogram {
 public:
  void add(uint32_t latency_ns);
  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] uint64_t mean_ns() const { return count_ == 0 ? 0 : sum_ns_ / count_; }
  // At most so many of a hundred took no longer than this; 0 if there are none.
  [[nodiscard]] uint64_t percentile_ns(unsigned percent) const;

 private:
  static size_t bucket_of(uint32_t latency_ns);
  static uint64_t highest_in(size_t bucket);
  std::vector<uint64_t> buckets_;  // empty until the first is added
  uint64_t count_ = 0;
  uint64_t sum_ns_ = 0;
  uint64_t longest_ns_ = 0;
};

struct CountedApi {
  std::string name;
  uint64_t calls = 0;    // all that were asked for: served, refused and failed
  uint64_t refused = 0;  // by gpucap
  uint64_t failed = 0;   // by the driver
  uint64_t bytes = 0;    // of the calls that succeeded
  LatencyHistogram latency;
};

class EventCounts {
 public:
  void add(const EventRecord& event);
  [[nodiscard]] std::vector<CountedApi> by_calls() const;  // most called first, then by name

 private:
  std::map<std::string, CountedApi> apis_;
};

std::vector<std::string> counts_as_table(const std::vector<CountedApi>& apis);
std::string counts_as_csv(const std::vector<CountedApi>& apis);

}  // namespace gpucap::tools
