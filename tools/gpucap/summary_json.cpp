// The end of a run as JSON, for scripts: see summary.h and docs/gpucap.md. Names are only ever added within a schema.
#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include "tools/common/names.h"
#include "tools/gpucap/summary.h"

namespace gpucap::tools {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kSchema = 1;

Json or_null(const std::optional<uint64_t>& value) { return value ? Json(*value) : Json(nullptr); }

Json device_object(const RunDevice& device) {
  return {{"gpu", device.ordinal},
          {"uuid", device.uuid},
          {"name", device.name},
          {"physical_bytes", device.physical_bytes},
          {"limit_bytes", or_null(device.limit_bytes)},
          {"limit_source", limit_source_name(device.limit_source)},
          {"on_limit", on_limit_name(device.on_limit)},
          {"group_limit_bytes", or_null(device.group_limit_bytes)},
          {"processes", device.processes},
          {"peak_bytes", device.peak_bytes},
          {"refused", device.refused_count},
          {"refused_bytes", device.refused_bytes},
          {"observed", device.observed_count},
          {"observed_bytes", device.observed_bytes},
          {"waits", device.waits_count},
          {"waits_ns", device.waits_ns},
          {"failed", device.failed_count},
          {"suggested_limit_bytes", or_null(device.suggested_limit_bytes())}};
}

}  // namespace

std::string RunSummary::json(const RunFacts& facts) const {
  const bool signalled = WIFSIGNALED(facts.wait_status);
  Json devices_list = Json::array();
  for (const RunDevice& device : devices()) devices_list.push_back(device_object(device));
  const Json object = {
      {"schema", kSchema},
      {"gpucap", GPUCAP_VERSION},
      {"run_id", facts.run_id},
      {"command", facts.command},
      {"started_realtime_ns", facts.started_realtime_ns},
      {"duration_ns", facts.duration_ns},
      {"waited_ns", facts.waited_ns},
      {"exit_status", signalled ? Json(nullptr) : Json(WEXITSTATUS(facts.wait_status))},
      {"signal", signalled ? Json(WTERMSIG(facts.wait_status)) : Json(nullptr)},
      {"group", facts.group.empty() ? Json(nullptr) : Json(facts.group)},
      {"processes", processes_.size()},
      {"devices", devices_list},
  };
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gpucap::tools
