// The model from what is there: see collector.h. What depends on the selection is in collector_focus.cpp.
#include "tools/top/collector.h"

#include <unistd.h>

#include <algorithm>

#include "tools/common/format.h"
#include "tools/top/watch.h"
#include "wire/files.h"
#include "wire/sweep.h"

namespace gpucap::tools {
namespace {

constexpr uint64_t kSecondNs = 1000000000;
constexpr uint64_t kSweepEveryNs = 60 * kSecondNs;
constexpr size_t kLongestHistory = 1024;
constexpr size_t kMostEvents = 256;

std::optional<uint64_t> limit_or_none(uint64_t limit_bytes) {
  return limit_bytes == GPUCAP_WIRE_NO_LIMIT ? std::nullopt : std::optional(limit_bytes);
}

uint64_t seconds_since(uint64_t then_ns, uint64_t now_ns) {
  return now_ns > then_ns ? (now_ns - then_ns) / kSecondNs : 0;
}

bool is_trouble(const gpucap_event& event) {
  switch (event.operation) {
    case GPUCAP_OP_REFUSE:
    case GPUCAP_OP_FAIL:
    case GPUCAP_OP_LIMIT:
    case GPUCAP_OP_WAIT:
    case GPUCAP_OP_OBSERVE:
      return true;
    default:
      return false;
  }
}

template <class T>
void keep_last(std::deque<T>* queue, size_t most) {
  while (queue->size() > most) queue->pop_front();
}

}  // namespace

Collector::Collector(CollectorOptions options)
    : options_(std::move(options)), segments_(options_.pids), nvml_(std::make_unique<CardNvml>()) {}

bool Collector::look() {
  const Places places = places_to_look(options_.directory);
  // Anew each time: the first capped process may start after us.
  directories_ = open_directories(places);
  if (directories_.open.empty() && !directories_.errors.empty()) return false;
  const uint64_t now_ns = wire::monotonic_now_ns();
  if (next_sweep_ns_ <= now_ns) {
    for (const SegmentDirectory& directory : directories_.open) wire::sweep(directory.fd());
    next_sweep_ns_ = now_ns + kSweepEveryNs;
  }
  segments_.look(directories_);
  nvml_->refresh();
  model_.time = local_time(segments_.realtime_ns()).substr(11, 8);
  model_.seconds_per_look = options_.seconds_per_look;
  model_.nvml_trouble = nvml_->why();
  model_.unreadable = segments_.unreadable();
  model_.unreadable.insert(model_.unreadable.end(), directories_.errors.begin(), directories_.errors.end());
  model_.advice = empty_table_advice(places);
  model_.rows.clear();
  model_.cards.clear();
  cards_by_uuid_.clear();
  cards_by_ordinal_.clear();
  for (const CardUse& use : nvml_->cards()) {
    cards_by_uuid_[use.uuid] = static_cast<uint32_t>(model_.cards.size());
    CardView card;
    card.number = use.number;
    card.name = use.name;
    card.total_bytes = use.total_bytes;
    card.used_bytes = use.used_bytes;
    card.reserved_bytes = use.reserved_bytes;
    model_.cards.push_back(std::move(card));
  }
  for (const auto& [path, live] : segments_.segments()) add_rows(live);
  remember_histories();
  remember_events();
  return true;
}

CardView* Collector::card_of(const wire::DeviceSnapshot& device) {
  CardUuid uuid;
  std::copy(std::begin(device.gauges.uuid), std::end(device.gauges.uuid), uuid.begin());
  if (uuid != CardUuid{}) nvml_->want(uuid);  // a new one appears at the next look
  const bool known = uuid != CardUuid{};
  const auto next = static_cast<uint32_t>(model_.cards.size());
  const auto found = known ? cards_by_uuid_.emplace(uuid, next).first->second
                           : cards_by_ordinal_.emplace(device.gauges.ordinal, next).first->second;
  if (found == next) {
    CardView card;
    card.number = model_.cards.empty() ? 0 : model_.cards.back().number + 1;
    model_.cards.push_back(std::move(card));
  }
  CardView* card = &model_.cards[found];
  if (card->name.empty()) card->name = device.name;
  if (!card->total_bytes && device.gauges.physical_bytes != 0) card->total_bytes = device.gauges.physical_bytes;
  return card;
}

void Collector::add_rows(const LiveSegment& live) {
  const bool alive = live.segment.liveness.liveness == wire::Liveness::kAlive;
  const uint64_t dead_seconds = seconds_since(live.segment.dead_since_ns, segments_.realtime_ns());
  if (!alive && (options_.keep_seconds == 0 || dead_seconds > options_.keep_seconds)) return;
  live.origin->cards.resize(live.segment.snapshot.devices.size());
  for (const wire::DeviceSnapshot& device : live.segment.snapshot.devices) {
    if (device.gauges.active == 0) continue;
    CardView* card = card_of(device);
    if (device.gauges.ordinal < live.origin->cards.size()) live.origin->cards[device.gauges.ordinal] = card->number;
    ProcessRow row = row_of(live, device);
    row.card = card->number;
    model_.rows.push_back(std::move(row));
    if (!alive) continue;
    const auto driver = static_cast<uint64_t>(std::max<int64_t>(device.gauges.driver_bytes, 0));
    const uint64_t used = device.used_bytes();
    card->driver_bytes += std::min(driver, used);
    card->data_bytes += used - std::min(driver, used);
    card->managed_bytes += static_cast<uint64_t>(std::max<int64_t>(device.gauges.managed_bytes, 0));
    ++card->processes;
    if (device.gauges.limit_bytes != GPUCAP_WIRE_NO_LIMIT) {
      ++card->capped_processes;
      card->caps_bytes += device.gauges.limit_bytes;
    }
  }
}

ProcessRow Collector::row_of(const LiveSegment& live, const wire::DeviceSnapshot& device) {
  const gpucap_device& gauges = device.gauges;
  const wire::SegmentSnapshot& snapshot = live.segment.snapshot;
  ProcessRow row;
  row.key = live.segment.path + "#" + std::to_string(gauges.ordinal);
  row.pid = live.segment.pid();
  row.parent_pid = live.parent_pid;
  row.parent_name = live.parent_name;
  row.container = live.segment.origin.container;
  row.user = live.segment.user;
  row.group = snapshot.group;
  row.command = command_line(snapshot.command);
  row.ordinal = gauges.ordinal;
  row.used_bytes = device.used_bytes();
  row.peak_bytes = gauges.peak_bytes;
  row.limit_bytes = limit_or_none(gauges.limit_bytes);
  row.policy_limit_bytes = limit_or_none(gauges.policy_limit_bytes);
  row.group_limit_bytes = limit_or_none(gauges.group_limit_bytes);
  row.group_used_bytes = gauges.group_used_bytes;
  row.physical_bytes = gauges.physical_bytes;
  row.driver_bytes = gauges.driver_bytes;
  row.live_count = device.live_count;
  row.refused_count = gauges.refused_count;
  row.waiting_count = gauges.waiting_count;
  row.age_seconds = seconds_since(snapshot.created_monotonic_ns, segments_.monotonic_ns());
  row.alive = live.segment.liveness.liveness == wire::Liveness::kAlive;
  row.how_ended = wire::to_text(live.segment.liveness.liveness);
  if (!row.alive) row.age_seconds = seconds_since(snapshot.created_realtime_ns, live.segment.dead_since_ns);
  if (!row.alive && (snapshot.ended_realtime_ns != 0 || live.seen_alive)) {
    row.ended_seconds_ago = seconds_since(live.segment.dead_since_ns, segments_.realtime_ns());
  }
  const bool ours = geteuid() == 0 || geteuid() == live.owner_uid;
  row.can_signal = row.alive && live.segment.liveness.viewer_pid > 0;
  row.can_limit = row.alive && ours;
  return row;
}

void Collector::remember_histories() {
  ++look_number_;
  for (const ProcessRow& row : model_.rows) {
    History& history = histories_[row.key];
    history.look_number = look_number_;
    if (row.alive) history.used_bytes.push_back(row.used_bytes);
    keep_last(&history.used_bytes, kLongestHistory);
  }
  std::erase_if(histories_, [&](const auto& entry) { return entry.second.look_number != look_number_; });
}

void Collector::remember_events() {
  for (const TailEvent& event : segments_.new_events()) {
    events_.push_back(event);
    if (is_trouble(event.raw)) troubles_.push_back(event);
  }
  keep_last(&events_, kMostEvents);
  keep_last(&troubles_, kMostEvents);
  model_.events_skipped = segments_.skipped_events();
}

const LiveSegment* Collector::segment_of(const std::string& row_key, uint32_t* ordinal) {
  const size_t mark = row_key.rfind('#');
  if (mark == std::string::npos) return nullptr;
  *ordinal = static_cast<uint32_t>(std::stoul(row_key.substr(mark + 1)));
  return segments_.find(row_key.substr(0, mark));
}

}  // namespace gpucap::tools
