// What others may see: the gauges and the event log in the shared segment. Where no segment can be made, the same words
// live in memory of our own and nobody reads them; the caps hold all the same. Any thread; never blocks, never
// allocates after set-up.
#pragma once

#include <atomic>
#include <cstdint>

#include "shim/process/clock.h"
#include "shim/process/device.h"
#include "wire/layout.h"
#include "wire/ring_writer.h"
#include "wire/segment_writer.h"

namespace gpucap {

struct Config;

// An event as the hooks tell it; the rest is filled in here.
struct Event {
  uint16_t api = 0;
  gpucap_operation operation = GPUCAP_OP_CHARGE;
  gpucap_kind kind = GPUCAP_KIND_NONE;
  int32_t result = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
  gpucap_refused_by refused_by = GPUCAP_REFUSED_BY_NOTHING;
  uint64_t at_ns = 0;    // when; 0: now
  uint64_t took_ns = 0;  // in the driver; 0: not measured
};

// The names in an event, as they lie in it: the entry point, and what it did to what kind of memory.
struct CallNames {
  constexpr CallNames(uint16_t api, gpucap_operation operation, gpucap_kind kind)
      : word(api | uint64_t{operation} << 40 | uint64_t{kind} << 48) {}
  [[nodiscard]] constexpr bool is_charge() const { return (word >> 40 & 0xff) == GPUCAP_OP_CHARGE; }
  uint64_t word;
};

class Telemetry {
 public:
  // Makes the segment, or says in one line why there is none. Then every device has gauges and counters.
  void set_up(const Config& config, Device* devices, int device_count, const char* const* api_names, uint32_t api_count,
              const char* version);
  void record(const Device& device, const Event& event);
  // The same for the thread's latest call into the driver, if it took or gave back memory; nearly all events are of
  // this kind. What was not timed has the time of the coarse clock.
  [[gnu::hot]] void record_call(const Device& device, CallNames names, uint64_t address, uint64_t bytes) {
    ThreadWords& thread = this_thread();
    const uint32_t lane = thread.lane;
    const bool publishes = ring_.attached();
    if (publishes) [[likely]]
      ring_.prepare();
    gpucap_api_counter& counter = device.counters[lane * device.api_count + static_cast<uint16_t>(names.word)];
    add_in_lane(counter.calls, uint64_t{1}, counter.bytes, bytes, lane);
    if (!publishes) [[unlikely]]
      return;
    const uint64_t when_ns = when(thread, names);
    const uint64_t latency = saturated(thread.call_took_ns);
    thread.call_ended_ns = thread.call_took_ns = 0;  // for one event only
    ring_.publish_words(
        {when_ns, thread.id, names.word | uint64_t{thread.origin} << 16 | uint64_t{device.ordinal} << 32, address,
         bytes, static_cast<uint64_t>(device.ledger.used()), latency},
        thread.ring_head);
  }
  // Publishes a device's own figures after a look.
  void looked(const Device& device, int64_t truth_bytes, uint64_t now_ns);
  void mark_ended();
  [[nodiscard]] const gpucap_control* control() const { return segment_.control(); }

 private:
  wire::SegmentWriter segment_;
  wire::RingWriter ring_;

  static uint64_t when(ThreadWords& thread, CallNames names) {
    uint64_t now_ns = thread.call_ended_ns;
    if (now_ns == 0) [[likely]] {
      // A charge has just been through needs_look().
      if (!names.is_charge()) thread.coarse_ns = coarse_ns();
      now_ns = thread.coarse_ns;
    }
    if (now_ns < thread.told_ns) now_ns = thread.told_ns;
    thread.told_ns = now_ns;
    return now_ns;
  }
  static uint32_t saturated(uint64_t ns) { return ns > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(ns); }
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
