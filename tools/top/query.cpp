// The table of fields: see query.h.
#include "tools/top/query.h"

#include <algorithm>
#include <tuple>

#include "tools/common/format.h"
#include "tools/common/names.h"
#include "tools/common/nearest.h"
#include "tools/common/text_width.h"
#include "tools/top/table.h"

namespace gpucap::tools {
namespace {

using Row = QueryRow;
constexpr FieldUnit kNone = FieldUnit::kNone;
constexpr FieldUnit kBytes = FieldUnit::kBytes;

const gpucap_device& gauges(const Row& row) { return row.device->gauges; }
const wire::SegmentSnapshot& process(const Row& row) { return row.segment->snapshot; }

FieldValue text_or_nothing(const std::string& text) { return text.empty() ? FieldValue{} : FieldValue{text}; }
FieldValue unless(uint64_t nothing, uint64_t value) { return value == nothing ? FieldValue{} : FieldValue{value}; }
FieldValue limit(uint64_t bytes) { return unless(GPUCAP_WIRE_NO_LIMIT, bytes); }
FieldValue count(uint64_t value) { return value; }
FieldValue moment(const Row& row, uint64_t monotonic_ns) { return unless(0, wall_time_ns(process(row), monotonic_ns)); }

FieldValue percent(const Row& row) {
  const uint64_t cap = gauges(row).limit_bytes;
  if (cap == GPUCAP_WIRE_NO_LIMIT || cap == 0) return {};
  return static_cast<uint64_t>(static_cast<double>(row.device->used_bytes()) / static_cast<double>(cap) * 100);
}

FieldValue last_refusal(const Row& row, FieldValue value) {
  return gauges(row).last_refused_monotonic_ns == 0 ? FieldValue{} : std::move(value);
}

FieldValue last_refused_api(const Row& row) {
  const auto& names = row.segment->api_names;
  const uint32_t number = gauges(row).last_refused_api;
  return number != 0 && number < names.size() ? last_refusal(row, names[number]) : FieldValue{};
}

FieldValue while_waiting(const Row& row, FieldValue value) {
  return gauges(row).waiting_count == 0 || !row.segment->alive() ? FieldValue{} : std::move(value);
}

}  // namespace

const std::vector<QueryField>& query_fields() {
  static const std::vector<QueryField> kFields = {
      {"timestamp", kNone, "local time of the look",
       [](const Row& r) -> FieldValue { return local_time(r.scan->realtime_ns); }},
      {"time_ns", kNone, "the same in nanoseconds since 1970", [](const Row& r) { return count(r.scan->realtime_ns); }},
      {"pid", kNone, "as you would address it", [](const Row& r) -> FieldValue { return int64_t{r.segment->pid()}; }},
      {"pid_in_namespace", kNone, "as the process sees itself", [](const Row& r) { return count(process(r).pid); }},
      {"parent_pid", kNone, "as you would address it; of the living",
       [](const Row& r) { return unless(0, static_cast<uint64_t>(r.segment->origin.parent_pid)); }},
      {"user", kNone, "owner of the process", [](const Row& r) -> FieldValue { return r.segment->user; }},
      {"group", kNone, "the budget that it shares", [](const Row& r) { return text_or_nothing(process(r).group); }},
      {"container", kNone, "id of its container; of the living",
       [](const Row& r) { return text_or_nothing(r.segment->origin.container); }},
      {"state", kNone, "live, ended or killed",
       [](const Row& r) -> FieldValue { return std::string(wire::to_text(r.segment->liveness.liveness)); }},
      {"on_limit", kNone, "what it does at the limit: deny, wait or observe",
       [](const Row& r) -> FieldValue { return on_limit_name(process(r).on_limit); }},
      {"command", kNone, "its words, with blanks between",
       [](const Row& r) -> FieldValue { return command_line(process(r).command); }},
      {"run_id", kNone, "of the gpucap run that started it",
       [](const Row& r) { return text_or_nothing(process(r).run_id); }},
      {"version", kNone, "of the library in it", [](const Row& r) -> FieldValue { return process(r).version; }},
      {"started_ns", kNone, "when it first used CUDA",
       [](const Row& r) { return count(process(r).created_realtime_ns); }},
      {"ended_ns", kNone, "since when it is dead; of a killed one when that was found",
       [](const Row& r) { return unless(0, r.segment->dead_since_ns); }},
      {"age", FieldUnit::kSeconds, "since it first used CUDA, to its end if it has ended",
       [](const Row& r) { return count(age_seconds(*r.segment, *r.scan)); }},
      {"gpu", kNone, "the number that the process itself uses", [](const Row& r) { return count(gauges(r).ordinal); }},
      {"gpu_uuid", kNone, "of the card, the same for all",
       [](const Row& r) -> FieldValue { return gpu_uuid_text(gauges(r).uuid); }},
      {"gpu_name", kNone, "of the card", [](const Row& r) -> FieldValue { return r.device->name; }},
      {"used", kBytes, "all that counts against the limit", [](const Row& r) { return count(r.device->used_bytes()); }},
      {"limit", kBytes, "the cap", [](const Row& r) { return limit(gauges(r).limit_bytes); }},
      {"limit_source", kNone, "where it comes from: environment, policy or set",
       [](const Row& r) {
         return gauges(r).limit_source == GPUCAP_LIMIT_FROM_NOWHERE
                    ? FieldValue{}
                    : FieldValue{limit_source_name(gauges(r).limit_source)};
       }},
      {"percent", FieldUnit::kPercent, "used of the limit, rounded down", percent},
      {"peak", kBytes, "the most it has used", [](const Row& r) { return count(gauges(r).peak_bytes); }},
      {"peak_ns", kNone, "when that was", [](const Row& r) { return moment(r, gauges(r).peak_monotonic_ns); }},
      {"physical", kBytes, "memory of the card", [](const Row& r) { return count(gauges(r).physical_bytes); }},
      {"policy_limit", kBytes, "the most that the policy allows",
       [](const Row& r) { return limit(gauges(r).policy_limit_bytes); }},
      {"group_limit", kBytes, "the group's budget on this card",
       [](const Row& r) { return limit(gauges(r).group_limit_bytes); }},
      {"group_used", kBytes, "by all members on this card, as this one last saw it",
       [](const Row& r) { return process(r).group.empty() ? FieldValue{} : FieldValue{gauges(r).group_used_bytes}; }},
      {"linear", kBytes, "cuMemAlloc and its like", [](const Row& r) -> FieldValue { return gauges(r).linear_bytes; }},
      {"array", kBytes, "arrays and mipmaps", [](const Row& r) -> FieldValue { return gauges(r).array_bytes; }},
      {"pool", kBytes, "stream-ordered pools", [](const Row& r) -> FieldValue { return gauges(r).pool_bytes; }},
      {"vmm", kBytes, "cuMemCreate", [](const Row& r) -> FieldValue { return gauges(r).vmm_bytes; }},
      {"managed", kBytes, "managed memory", [](const Row& r) -> FieldValue { return gauges(r).managed_bytes; }},
      {"driver", kBytes, "what the driver took by itself",
       [](const Row& r) -> FieldValue { return gauges(r).driver_bytes; }},
      {"driver_source", kNone, "where that figure comes from: nvml, device_difference or none",
       [](const Row& r) -> FieldValue { return truth_name(gauges(r).truth); }},
      {"reserved", kBytes, "promised to calls that are under way",
       [](const Row& r) -> FieldValue { return r.device->reserved_bytes; }},
      {"live", kNone, "living allocations", [](const Row& r) -> FieldValue { return r.device->live_count; }},
      {"refused", kNone, "requests refused", [](const Row& r) { return count(gauges(r).refused_count); }},
      {"refused_bytes", kBytes, "their sum", [](const Row& r) { return count(gauges(r).refused_bytes); }},
      {"last_refused_bytes", kBytes, "of the latest refusal",
       [](const Row& r) { return last_refusal(r, gauges(r).last_refused_bytes); }},
      {"last_refused_api", kNone, "the function that was refused", last_refused_api},
      {"last_refused_by", kNone, "cap, group or card",
       [](const Row& r) { return last_refusal(r, refused_by_name(gauges(r).last_refused_by)); }},
      {"last_refused_ns", kNone, "when", [](const Row& r) { return moment(r, gauges(r).last_refused_monotonic_ns); }},
      {"waiting", kNone, "threads that wait for room now",
       [](const Row& r) { return count(r.segment->alive() ? gauges(r).waiting_count : 0); }},
      {"waiting_bytes", kBytes, "what they ask for",
       [](const Row& r) { return while_waiting(r, gauges(r).waiting_bytes); }},
      {"waiting_since_ns", kNone, "since when the first of them waits",
       [](const Row& r) { return while_waiting(r, moment(r, gauges(r).waiting_monotonic_ns)); }},
      {"waits", kNone, "requests that ever waited", [](const Row& r) { return count(gauges(r).waits_count); }},
      {"waits_ns", kNone, "how long, in all", [](const Row& r) { return count(gauges(r).waits_ns); }},
      {"observed", kNone, "over the limit, but let through to observe",
       [](const Row& r) { return count(gauges(r).observed_count); }},
      {"observed_bytes", kBytes, "their sum", [](const Row& r) { return count(gauges(r).observed_bytes); }},
      {"failed", kNone, "turned down by the driver itself", [](const Row& r) { return count(gauges(r).failed_count); }},
      {"file", kNone, "where all this was read",
       [](const Row& r) -> FieldValue { return wire::clean_text(r.segment->path); }},
  };
  return kFields;
}

std::vector<QueryRow> query_rows(const Scan& scan) {
  std::vector<QueryRow> rows;
  for (const Segment& segment : scan.segments) {
    for (const wire::DeviceSnapshot& device : segment.snapshot.devices) {
      if (device.gauges.active != 0) rows.push_back({&scan, &segment, &device});
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const QueryRow& a, const QueryRow& b) {
    const auto key = [](const QueryRow& row) {
      return std::tuple(row.segment->pid(), process(row).created_realtime_ns, gauges(row).ordinal);
    };
    return key(a) < key(b);
  });
  return rows;
}

bool find_fields(std::string_view names, std::vector<const QueryField*>* fields, std::string* error) {
  std::vector<std::string> known;
  for (const QueryField& field : query_fields()) known.emplace_back(field.name);
  while (true) {
    const size_t comma = std::min(names.find(','), names.size());
    std::string_view name = names.substr(0, comma);
    while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      *error = "unknown field '" + wire::clean_text(name) + "'";
      if (const std::string meant = nearest(name, known); !meant.empty()) *error += "; did you mean " + meant + "?";
      *error += " (gpucap-top --query-fields lists them)";
      return false;
    }
    fields->push_back(&query_fields()[static_cast<size_t>(found - known.begin())]);
    if (comma == names.size()) return true;
    names.remove_prefix(comma + 1);
  }
}

std::string query_fields_help() {
  size_t width = 0;
  for (const QueryField& field : query_fields()) width = std::max(width, std::string_view(field.name).size());
  std::string text;
  for (const QueryField& field : query_fields()) {
    const char* unit = field.unit == FieldUnit::kBytes     ? "bytes"
                       : field.unit == FieldUnit::kPercent ? "%"
                       : field.unit == FieldUnit::kSeconds ? "s"
                                                           : "";
    text += padded_right(field.name, width) + "  " + padded_right(unit, 5) + "  " + field.meaning + "\n";
  }
  return text;
}

}  // namespace gpucap::tools
