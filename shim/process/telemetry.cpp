#include "shim/process/telemetry.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "shim/process/clock.h"
#include "shim/process/config.h"
#include "shim/process/device.h"
#include "shim/process/log.h"
#include "shim/process/pages.h"
#include "shim/process/ticks.h"

namespace gpucap {

thread_local uint16_t current_origin = 0;
thread_local uint32_t charging_calls = 0;
thread_local uint64_t call_ticks = 0;

namespace {

constexpr uint32_t kRingCapacity = 16384;  // 1 MiB of events

uint32_t thread_id() {
  static thread_local uint32_t id __attribute__((tls_model("initial-exec"))) = 0;
  if (id == 0) id = static_cast<uint32_t>(syscall(SYS_gettid));
  return id;
}

// Gauges that nobody reads, so that no caller needs to know whether there is a segment.
void give_private_gauges(Device* devices, int device_count, uint32_t api_count) {
  const size_t each = sizeof(gpucap_device) + api_count * sizeof(gpucap_api_counter);
  auto* memory = static_cast<unsigned char*>(kernel_pages().take(each * static_cast<size_t>(device_count)));
  static gpucap_device last_resort_gauge;
  static gpucap_api_counter last_resort_counters[1024];
  for (int i = 0; i < device_count; ++i) {
    unsigned char* at = memory == nullptr ? nullptr : memory + each * static_cast<size_t>(i);
    devices[i].gauge = at == nullptr ? &last_resort_gauge : reinterpret_cast<gpucap_device*>(at);
    devices[i].counters =
        at == nullptr ? last_resort_counters : reinterpret_cast<gpucap_api_counter*>(at + sizeof(gpucap_device));
  }
}

void describe(const void* devices, gpucap_device* gauge) {
  const Device& device = static_cast<const Device*>(devices)[gauge->ordinal];
  memcpy(gauge->uuid, device.uuid, sizeof(gauge->uuid));
  memcpy(gauge->name, device.name, sizeof(gauge->name));
  gauge->physical_bytes = device.physical_bytes;
  gauge->limit_bytes = device.ledger.limit();
  gauge->policy_limit_bytes = device.policy_limit;
  gauge->limit_source = device.limit_source;
}

}  // namespace

void Telemetry::set_up(const Config& config, Device* devices, int device_count, const char* const* api_names,
                       uint32_t api_count, const char* version) {
  wire::SegmentSpec spec;
  spec.directory = config.directory;
  spec.directory_is_default = config.directory_is_default;
  spec.device_count = static_cast<uint32_t>(device_count);
  spec.api_names = api_names;
  spec.api_count = api_count;
  spec.ring_capacity = kRingCapacity;
  spec.run_id = config.run_id;
  spec.version = version;
  spec.group = config.group;
  spec.on_limit = static_cast<gpucap_on_limit>(config.on_limit.mode);
  spec.wait_at_most_ns = config.on_limit.wait_ns;
  spec.describe = describe;
  spec.describe_argument = devices;
  ticks_at_start_ = ticks();
  ns_at_start_ = monotonic_ns();
  int error_number = 0;
  const wire::SegmentError error = segment_.create(spec, &error_number);
  if (error != wire::SegmentError::kNone) {
    log_line(LogLevel::kWarn,
             "cannot publish figures in %s: %s (%s); the cap holds, but gpucap-top will not see pid %ld",
             config.directory, wire::to_text(error), strerror(error_number), static_cast<long>(getpid()));
    give_private_gauges(devices, device_count, api_count);
    for (int i = 0; i < device_count; ++i) {
      devices[i].gauge->ordinal = devices[i].ordinal;
      describe(devices, devices[i].gauge);
    }
  } else {
    ring_ = segment_.ring();
    for (int i = 0; i < device_count; ++i) {
      devices[i].gauge = segment_.device(static_cast<uint32_t>(i));
      devices[i].counters = segment_.counters(static_cast<uint32_t>(i));
      devices[i].control = segment_.control();
    }
  }
}

void Telemetry::record(const Device& device, const Event& event) {
  gpucap_api_counter& counter = device.counters[event.api];
  if (event.operation == GPUCAP_OP_REFUSE) {
    add(counter.refused, 1);
  } else if (event.operation == GPUCAP_OP_CHARGE || event.operation == GPUCAP_OP_RELEASE) {
    add(counter.calls, 1);
    add(counter.bytes, event.bytes);
  }
  if (!ring_.attached()) return;
  gpucap_event out{};
  out.monotonic_ns = monotonic_ns();
  out.thread = thread_id();
  out.result = event.result;
  out.api = event.api;
  out.origin = current_origin;
  out.device = static_cast<uint8_t>(device.ordinal);
  out.operation = static_cast<uint8_t>(event.operation);
  out.kind = static_cast<uint8_t>(event.kind);
  out.address = event.address;
  out.bytes = event.bytes;
  out.used_after = static_cast<uint64_t>(device.ledger.used());
  out.latency_ns = event.latency_ns;
  out.refused_by = static_cast<uint8_t>(event.refused_by);
  ring_.publish(out);
}

// Over all the time since the start, so that it only gets better. Under the look lock of a device; where two devices
// are looked at together, either's figure is right.
void Telemetry::measure_pace(uint64_t now_ns) {
  const uint64_t counted = ticks() - ticks_at_start_;
  const uint64_t passed = now_ns - ns_at_start_;
  if (passed < 1'000'000 || counted < 1000) return;
  const double pace = static_cast<double>(passed) / static_cast<double>(counted);
  pace_.store(static_cast<uint64_t>(pace * 4294967296.0), std::memory_order_relaxed);
}

void Telemetry::looked(const Device& device, int64_t truth_bytes, uint64_t now_ns) {
  measure_pace(now_ns);
  gpucap_device& gauge = *device.gauge;
  set(gauge.driver_bytes, device.ledger.driver());
  set(gauge.looked_bytes, static_cast<uint64_t>(truth_bytes < 0 ? 0 : truth_bytes));
  set(gauge.looked_monotonic_ns, now_ns);
  add(gauge.look_count, 1);
  if (!segment_.attached()) return;
  set(segment_.header()->updated_monotonic_ns, now_ns);
  segment_.keep_alive();
}

void Telemetry::mark_ended() {
  if (segment_.attached()) segment_.mark_ended();
}

}  // namespace gpucap
