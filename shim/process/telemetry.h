// What others may see: the gauges and the event log in the shared segment. Where no segment can be made, the same words
// live in memory of our own and nobody reads them; the caps hold all the same. Any thread; never blocks, never
// allocates after set-up.
#pragma once

#include <atomic>
#include <cstdint>

#include "wire/layout.h"
#include "wire/ring_writer.h"
#include "wire/segment_writer.h"

namespace gpucap {

struct Config;
struct Device;

// An event as the hooks tell it; the rest is filled in here.
struct Event {
  uint16_t api = 0;
  gpucap_operation operation = GPUCAP_OP_CHARGE;
  gpucap_kind kind = GPUCAP_KIND_NONE;
  int32_t result = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
  gpucap_refused_by refused_by = GPUCAP_REFUSED_BY_NOTHING;
  uint32_t latency_ns = 0;
};

// The runtime entry point that the current call came through, as an API number; 0 for none. Saved and restored by the
// runtime hooks around the call.
extern thread_local uint16_t current_origin __attribute__((tls_model("initial-exec")));

// Counts the driver's allocating calls of this thread that came through our hooks, so that the runtime hooks can tell
// whether theirs did.
extern thread_local uint32_t charging_calls __attribute__((tls_model("initial-exec")));

class Telemetry {
 public:
  // Makes the segment, or says in one line why there is none. Then every device has gauges and counters.
  void set_up(const Config& config, Device* devices, int device_count, const char* const* api_names, uint32_t api_count,
              const char* version);
  void record(const Device& device, const Event& event);
  // Publishes a device's own figures after a look.
  void looked(const Device& device, int64_t truth_bytes, uint64_t now_ns);
  void mark_ended();
  // Nanoseconds, 0 while the counter's pace is not known (the first milliseconds).
  [[nodiscard]] uint32_t latency_ns(uint64_t counted) const {
    const uint64_t pace = pace_.load(std::memory_order_relaxed);
    if (counted > UINT64_MAX >> 24) return UINT32_MAX;
    const uint64_t ns = (counted >> 12) * (pace >> 20) + ((counted & 0xfff) * (pace >> 20) >> 12);
    return ns > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(ns);
  }
  [[nodiscard]] const gpucap_control* control() const { return segment_.control(); }

 private:
  wire::SegmentWriter segment_;
  wire::RingWriter ring_;

  void measure_pace(uint64_t now_ns);
  std::atomic<uint64_t> pace_{0};  // nanoseconds a tick, times 2^32
  uint64_t ticks_at_start_ = 0;
  uint64_t ns_at_start_ = 0;
};

inline void add(int64_t& gauge, int64_t delta) {
  std::atomic_ref<int64_t>(gauge).fetch_add(delta, std::memory_order_relaxed);
}
inline void add(uint64_t& gauge, uint64_t delta) {
  std::atomic_ref<uint64_t>(gauge).fetch_add(delta, std::memory_order_relaxed);
}
template <typename T>
void set(T& gauge, T value) {
  std::atomic_ref<T>(gauge).store(value, std::memory_order_relaxed);
}

}  // namespace gpucap
