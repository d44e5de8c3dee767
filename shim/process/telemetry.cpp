#include "shim/process/telemetry.h"

#include <unistd.h>

#include <cstring>

#include "shim/process/clock.h"
#include "shim/process/config.h"
#include "shim/process/device.h"
#include "shim/process/log.h"
#include "shim/process/pages.h"

namespace gpucap {

namespace {

constexpr uint32_t kRingCapacity = 16384;  // 1 MiB of events

// Gauges that nobody reads, so that no caller needs to know whether there is a segment.
void give_private_gauges(Device* devices, int device_count, uint32_t api_count) {
  const size_t counters = size_t{kLanes} * api_count * sizeof(gpucap_api_counter);
  const size_t each = sizeof(gpucap_device) + kLanes * sizeof(gpucap_lane) + counters;
  auto* memory = static_cast<unsigned char*>(kernel_pages().take(each * static_cast<size_t>(device_count)));
  static gpucap_device last_resort_gauge;
  static gpucap_lane last_resort_lanes[kLanes];
  static gpucap_api_counter last_resort_counters[kLanes * 1024];
  for (int i = 0; i < device_count; ++i) {
    Device& device = devices[i];
    device.gauge = &last_resort_gauge;
    device.lanes = last_resort_lanes;
    device.counters = last_resort_counters;
    if (memory == nullptr) continue;
    void* at = memory + each * static_cast<size_t>(i);
    device.gauge = static_cast<gpucap_device*>(at);
    device.lanes = reinterpret_cast<gpucap_lane*>(device.gauge + 1);
    device.counters = reinterpret_cast<gpucap_api_counter*>(device.lanes + kLanes);
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
  spec.lane_count = kLanes;
  spec.ring_capacity = kRingCapacity;
  spec.run_id = config.run_id;
  spec.version = version;
  spec.group = config.group;
  spec.on_limit = static_cast<gpucap_on_limit>(config.on_limit.mode);
  spec.wait_at_most_ns = config.on_limit.wait_ns;
  spec.describe = describe;
  spec.describe_argument = devices;
  for (int i = 0; i < device_count; ++i) devices[i].api_count = api_count;
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
      devices[i].lanes = segment_.lanes(static_cast<uint32_t>(i));
      devices[i].counters = segment_.counters(static_cast<uint32_t>(i));
      devices[i].control = segment_.control();
    }
  }
}

void Telemetry::record(const Device& device, const Event& event) {
  ThreadWords& thread = this_thread();
  gpucap_api_counter& counter = device.counters[thread.lane * device.api_count + event.api];
  if (event.operation == GPUCAP_OP_CHARGE || event.operation == GPUCAP_OP_RELEASE) {
    add_in_lane(counter.calls, uint64_t{1}, thread.lane);
    add_in_lane(counter.bytes, event.bytes, thread.lane);
  } else if (event.operation == GPUCAP_OP_REFUSE) {
    add_in_lane(counter.refused, uint64_t{1}, thread.lane);
  }
  if (!ring_.attached()) return;
  gpucap_event out{};
  out.monotonic_ns = event.at_ns == 0 ? monotonic_ns() : event.at_ns;
  thread.told_ns = out.monotonic_ns;
  out.thread = thread.id;
  out.result = event.result;
  out.api = event.api;
  out.origin = thread.origin;
  out.device = static_cast<uint8_t>(device.ordinal);
  out.operation = static_cast<uint8_t>(event.operation);
  out.kind = static_cast<uint8_t>(event.kind);
  out.address = event.address;
  out.bytes = event.bytes;
  out.used_after = static_cast<uint64_t>(device.ledger.used());
  out.latency_ns = saturated(event.took_ns);
  out.refused_by = static_cast<uint8_t>(event.refused_by);
  ring_.publish(out);
}

void Telemetry::looked(const Device& device, int64_t truth_bytes, uint64_t now_ns) {
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
