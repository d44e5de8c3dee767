// What the screen shows of the selection: its history, its events, its details. See collector.h.
#include <algorithm>

#include "tools/common/format.h"
#include "tools/common/names.h"
#include "tools/common/scan.h"
#include "tools/top/collector.h"
#include "tools/top/view_rows.h"

namespace gpucap::tools {
namespace {

std::string api_name(const std::vector<std::string>& names, uint32_t number) {
  return number < names.size() ? names[number] : "api " + std::to_string(number);
}

std::string source_text(uint32_t source) {
  switch (source) {
    case GPUCAP_LIMIT_FROM_ENVIRONMENT:
      return "from its environment";
    case GPUCAP_LIMIT_FROM_POLICY:
      return "from the policy file";
    case GPUCAP_LIMIT_FROM_CONTROL:
      return "changed while it ran";
    default:
      return "";
  }
}

std::string on_limit_text(const wire::SegmentSnapshot& snapshot) {
  switch (snapshot.on_limit) {
    case GPUCAP_ON_LIMIT_WAIT:
      return snapshot.wait_at_most_ns == 0
                 ? "waits for room"
                 : "waits for room, " + human_duration(snapshot.wait_at_most_ns / 1000000000) + " at most";
    case GPUCAP_ON_LIMIT_OBSERVE:
      return "observes: lets requests through and counts them";
    default:
      return "refuses";
  }
}

std::string truth_text(uint32_t truth) {
  switch (truth) {
    case GPUCAP_TRUTH_NVML:
      return "as NVML tells";
    case GPUCAP_TRUTH_DEVICE_DIFF:
      return "by how much the card's use grew";
    default:
      return "an estimate";
  }
}

void sort_by_weight(std::vector<ApiLine>* apis) {
  std::stable_sort(apis->begin(), apis->end(), [](const ApiLine& a, const ApiLine& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.calls > b.calls;
  });
}

}  // namespace

void Collector::focus(const ViewState& state) {
  const std::vector<ArrangedRow> rows = arrange(model_, state);
  const std::optional<size_t> at = selected_position(rows, model_, state.selected_key);
  model_.history.clear();
  if (at) {
    const std::deque<uint64_t>& history = histories_[model_.rows[*rows[*at].index].key].used_bytes;
    model_.history.assign(history.begin(), history.end());
  }
  choose_events(state);
  fill_details(state);
}

EventLine Collector::event_line_of(const gpucap_event& raw, const EventOrigin& origin) const {
  EventLine line;
  line.time = local_time(origin.created_realtime_ns + (raw.monotonic_ns - origin.created_monotonic_ns)).substr(11, 12);
  line.pid = origin.pid;
  line.card = raw.device < origin.cards.size() ? origin.cards[raw.device] : raw.device;
  line.operation = raw.operation;
  line.refused_by = raw.refused_by;
  if (raw.origin != 0) line.call = api_name(origin.api_names, raw.origin) + " > ";
  if (raw.api != 0) line.call += api_name(origin.api_names, raw.api);  // a change of a limit came by no call
  line.bytes = raw.bytes;
  if (raw.used_after != kUseUnknown) line.used_after_bytes = raw.used_after;
  if (raw.result != 0) line.result = result_name(raw.result);
  return line;
}

void Collector::choose_events(const ViewState& state) {
  model_.events.clear();
  if (state.events == EventScope::kHidden || state.page != Page::kTable) return;
  if (state.events != EventScope::kSelected) {
    for (const TailEvent& event : state.events == EventScope::kAll ? events_ : troubles_) {
      model_.events.push_back(event_line_of(event.raw, *event.origin));
    }
    return;
  }
  const std::vector<ArrangedRow> rows = arrange(model_, state);
  const std::optional<size_t> at = selected_position(rows, model_, state.selected_key);
  uint32_t ordinal = 0;
  const LiveSegment* live = at ? segment_of(model_.rows[*rows[*at].index].key, &ordinal) : nullptr;
  if (live == nullptr) return;
  for (const gpucap_event& event : live->tail) model_.events.push_back(event_line_of(event, *live->origin));
}

void Collector::fill_details(const ViewState& state) {
  model_.details.reset();
  if (state.page != Page::kDetails) {
    detailed_key_.clear();
    blocks_.reset();
    blocks_ring_.reset();
    return;
  }
  uint32_t ordinal = 0;
  const LiveSegment* live = segment_of(state.selected_key, &ordinal);
  wire::SegmentSnapshot snapshot;
  int error_number = 0;
  if (live == nullptr || live->reader.snapshot(&snapshot, &error_number) != wire::ReadError::kNone) return;
  const auto device = std::find_if(snapshot.devices.begin(), snapshot.devices.end(),
                                   [&](const wire::DeviceSnapshot& each) { return each.gauges.ordinal == ordinal; });
  if (device == snapshot.devices.end()) return;
  if (detailed_key_ != state.selected_key) {
    detailed_key_ = state.selected_key;
    blocks_.emplace(static_cast<uint8_t>(ordinal));
    blocks_ring_ = live->reader.ring();
  }
  const bool dead = live->segment.liveness.liveness != wire::Liveness::kAlive;
  gpucap_event raw;
  // A writer that is faster than we are must not keep us here for ever.
  for (uint64_t count = 0; count < 2 * snapshot.ring_capacity; ++count) {
    if (blocks_ring_->next(dead, &raw) != wire::RingStatus::kEvent) break;
    blocks_->feed(raw);
  }

  const gpucap_device& gauges = device->gauges;
  ProcessDetails more;
  more.key = state.selected_key;
  more.card_name = device->name;
  more.version = snapshot.version;
  more.run_id = snapshot.run_id;
  more.limit_source = source_text(gauges.limit_source);
  more.truth = truth_text(gauges.truth);
  more.on_limit = on_limit_text(snapshot);
  more.pid_in_namespace = static_cast<int>(snapshot.pid);
  more.linear_bytes = gauges.linear_bytes;
  more.array_bytes = gauges.array_bytes;
  more.pool_bytes = gauges.pool_bytes;
  more.vmm_bytes = gauges.vmm_bytes;
  more.managed_bytes = gauges.managed_bytes;
  more.reserved_bytes = device->reserved_bytes;
  if (gauges.peak_monotonic_ns != 0 && segments_.monotonic_ns() >= gauges.peak_monotonic_ns) {
    more.peak_seconds_ago = (segments_.monotonic_ns() - gauges.peak_monotonic_ns) / 1000000000;
  }
  more.refused_bytes = gauges.refused_bytes;
  more.failed_count = gauges.failed_count;
  more.observed_count = gauges.observed_count;
  more.observed_bytes = gauges.observed_bytes;
  more.waits_count = gauges.waits_count;
  more.waits_ns = gauges.waits_ns;
  more.events_written = snapshot.events_claimed + snapshot.events_dropped;
  more.events_lost = blocks_ring_->lost();
  for (size_t api = 0; api < device->counters.size(); ++api) {
    const wire::ApiCounters& counters = device->counters[api];
    if (counters.calls == 0 && counters.refused == 0) continue;
    more.apis.push_back({api_name(live->reader.api_names(), static_cast<uint32_t>(api)), counters.calls,
                         counters.refused, counters.bytes});
  }
  sort_by_weight(&more.apis);
  more.blocks_known = blocks_->blocks();
  more.sizes = blocks_->classes();
  for (const gpucap_event& refusal : blocks_->refusals()) {
    more.refusals.push_back(event_line_of(refusal, *live->origin));
  }
  if (more.refusals.empty() && gauges.refused_count != 0) {
    // The log has lost it; the gauges still know the latest.
    more.refusals.push_back(event_line_of(last_refusal(gauges), *live->origin));
  }
  model_.details = std::move(more);
}

}  // namespace gpucap::tools
