// Events counted by entry point: see counts.h.
#include "tools/top/counts.h"

#include <algorithm>
#include <bit>

#include "tools/common/format.h"
#include "tools/common/text_width.h"
#include "tools/top/csv.h"

namespace gpucap::tools {
namespace {

constexpr int kSubBits = 7;  // 128 steps for each doubling
constexpr size_t kSteps = size_t{1} << kSubBits;
constexpr size_t kBuckets = kSteps * (32 - kSubBits + 1);

// What happened to a request, as opposed to what gpucap noticed by itself or only announces.
bool is_a_call(uint8_t operation) {
  return operation == GPUCAP_OP_CHARGE || operation == GPUCAP_OP_RELEASE || operation == GPUCAP_OP_REFUSE ||
         operation == GPUCAP_OP_FAIL;
}

}  // namespace

size_t LatencyHistogram::bucket_of(uint32_t latency_ns) {
  if (latency_ns < kSteps) return latency_ns;
  const int doublings = std::bit_width(latency_ns) - 1 - kSubBits;
  return kSteps * static_cast<size_t>(doublings) + (latency_ns >> doublings);
}

uint64_t LatencyHistogram::highest_in(size_t bucket) {
  if (bucket < kSteps) return bucket;
  const size_t doublings = bucket / kSteps - 1;
  return ((bucket - kSteps * doublings + 1) << doublings) - 1;
}

void LatencyHistogram::add(uint32_t latency_ns) {
  if (buckets_.empty()) buckets_.resize(kBuckets);
  ++buckets_[bucket_of(latency_ns)];
  ++count_;
  sum_ns_ += latency_ns;
  longest_ns_ = std::max<uint64_t>(longest_ns_, latency_ns);
}

uint64_t LatencyHistogram::percentile_ns(unsigned percent) const {
  // The smallest value that so many in a hundred do not exceed.
  const uint64_t wanted = (count_ * percent + 99) / 100;
  uint64_t seen = 0;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    seen += buckets_[bucket];
    if (seen >= wanted) return std::min(highest_in(bucket), longest_ns_);
  }
  return 0;
}

void EventCounts::add(const EventRecord& event) {
  if (!is_a_call(event.operation)) return;
  CountedApi& api = apis_[event.api];
  api.name = event.api;
  ++api.calls;
  if (event.operation == GPUCAP_OP_REFUSE) ++api.refused;
  if (event.operation == GPUCAP_OP_FAIL) ++api.failed;
  if (event.operation == GPUCAP_OP_CHARGE || event.operation == GPUCAP_OP_RELEASE) api.bytes += event.bytes;
  if (event.latency_ns != 0) api.latency.add(event.latency_ns);
}

std::vector<CountedApi> EventCounts::by_calls() const {
  std::vector<CountedApi> apis;
  for (const auto& [name, api] : apis_) apis.push_back(api);
  std::stable_sort(apis.begin(), apis.end(),
                   [](const CountedApi& a, const CountedApi& b) { return a.calls > b.calls; });
  return apis;
}

std::vector<std::string> counts_as_table(const std::vector<CountedApi>& apis) {
  std::vector<std::vector<std::string>> cells = {{"API", "CALLS", "REFUSED", "FAILED", "BYTES", "MEAN", "P99"}};
  for (const CountedApi& api : apis) {
    const bool timed = api.latency.count() != 0;
    cells.push_back({api.name, std::to_string(api.calls), std::to_string(api.refused), std::to_string(api.failed),
                     human_bytes(api.bytes), timed ? human_latency(api.latency.mean_ns()) : "-",
                     timed ? human_latency(api.latency.percentile_ns(99)) : "-"});
  }
  return aligned_table(cells);
}

std::string counts_as_csv(const std::vector<CountedApi>& apis) {
  std::string text = csv_line({"api", "calls", "refused", "failed", "bytes", "timed", "mean_ns", "p99_ns"}, false);
  for (const CountedApi& api : apis) {
    const bool timed = api.latency.count() != 0;
    text += csv_line({api.name, std::to_string(api.calls), std::to_string(api.refused), std::to_string(api.failed),
                      std::to_string(api.bytes), std::to_string(api.latency.count()),
                      timed ? std::to_string(api.latency.mean_ns()) : "",
                      timed ? std::to_string(api.latency.percentile_ns(99)) : ""},
                     false);
  }
  return text;
}

}  // namespace gpucap::tools
