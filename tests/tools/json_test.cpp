// The documented JSON: names, types and what is null.
#include "tools/top/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

namespace gpucap::tools {
namespace {

using Json = nlohmann::json;

Scan sample() {
  Segment segment;
  segment.path = "/d/7.0.gpucap";
  segment.user = "ann";
  segment.api_names = {"none", "cuMemAlloc_v2"};
  segment.liveness = {wire::Liveness::kAlive, 4711};
  segment.snapshot.pid = 7;
  segment.snapshot.command = {"python", "train.py"};
  segment.snapshot.created_realtime_ns = 5;
  wire::DeviceSnapshot device;
  device.name = "Card";
  device.gauges.active = 1;
  device.gauges.linear_bytes = int64_t{1} << 60;
  device.gauges.driver_bytes = -3;
  device.gauges.limit_bytes = GPUCAP_WIRE_NO_LIMIT;
  device.gauges.physical_bytes = uint64_t{1} << 63;
  device.gauges.uuid[0] = 0xab;
  device.counters = {{0, 0, 0}, {2, 1, 300}};
  segment.snapshot.devices = {device, device};
  segment.snapshot.devices[1].gauges.limit_bytes = 1024;
  Segment dead = segment;
  dead.liveness.liveness = wire::Liveness::kEnded;
  dead.snapshot.ended_realtime_ns = 9;
  dead.dead_since_ns = 9;
  Scan scan;
  scan.segments = {segment, dead};
  scan.unreadable = {"/d/x.gpucap: not a gpucap segment"};
  scan.realtime_ns = 11;
  return scan;
}

Scan living() {
  Scan scan = sample();
  scan.segments.pop_back();
  return scan;
}

std::set<std::string> keys(const Json& object) {
  std::set<std::string> names;
  for (const auto& item : object.items()) names.insert(item.key());
  return names;
}

TEST(ScanAsJson, HasTheDocumentedShape) {
  const Json json = Json::parse(scan_as_json(living(), {}, true));
  EXPECT_EQ(keys(json), (std::set<std::string>{"schema", "time_ns", "directories", "processes", "unreadable"}));
  EXPECT_EQ(json["schema"], 2);
  ASSERT_EQ(json["processes"].size(), 1u);
  const Json& process = json["processes"][0];
  EXPECT_EQ(keys(process), (std::set<std::string>{"pid", "pid_in_namespace", "user", "state", "command", "run_id",
                                                  "version", "started_ns", "ended_ns", "age_seconds", "events_written",
                                                  "events_dropped", "devices", "file",
                                                  // since schema 2
                                                  "parent_pid", "parent_pid_in_namespace", "container", "group",
                                                  "on_limit", "wait_at_most_ns", "dead_since_ns"}));
  EXPECT_EQ(process["pid"], 4711);
  EXPECT_EQ(process["pid_in_namespace"], 7);
  EXPECT_EQ(process["state"], "live");
  EXPECT_TRUE(process["ended_ns"].is_null());
  EXPECT_EQ(process["command"], (Json{"python", "train.py"}));
  const Json& device = process["devices"][0];
  EXPECT_EQ(
      keys(device),
      (std::set<std::string>{
          "ordinal", "name", "uuid", "active", "physical_bytes", "limit_bytes", "used_bytes", "peak_bytes",
          "linear_bytes", "array_bytes", "pool_bytes", "vmm_bytes", "managed_bytes", "driver_bytes", "driver_source",
          "reserved_bytes", "live_count", "refused_count", "refused_bytes", "apis",
          // since schema 2
          "limit_source", "policy_limit_bytes", "group_limit_bytes", "group_used_bytes", "peak_ns", "last_refusal",
          "waiting", "waits_count", "waits_ns", "observed_count", "observed_bytes", "failed_count"}));
  for (const auto& item : device.items()) {
    const std::string& key = item.key();
    if (key.size() > 6 && key.substr(key.size() - 6) == "_bytes" && key.find("limit_bytes") == std::string::npos &&
        key != "group_used_bytes") {
      EXPECT_TRUE(item.value().is_number_integer()) << key;
    }
  }
  EXPECT_TRUE(device["limit_bytes"].is_null());
  EXPECT_EQ(process["devices"][1]["limit_bytes"], 1024);
  EXPECT_EQ(device["used_bytes"], (int64_t{1} << 60) - 3);
  EXPECT_EQ(device["physical_bytes"], uint64_t{1} << 63);
  EXPECT_EQ(device["driver_bytes"], -3);
  EXPECT_EQ(device["uuid"], "GPU-ab000000-0000-0000-0000-000000000000");
  EXPECT_EQ(device["apis"], Json::parse(R"([{"name":"cuMemAlloc_v2","calls":2,"refused":1,"bytes":300}])"));
}

TEST(ScanAsJson, TheDeadComeWithTheirState) {
  const Json json = Json::parse(scan_as_json(sample(), {}, false));
  ASSERT_EQ(json["processes"].size(), 2u);
  EXPECT_EQ(json["processes"][1]["state"], "ended");
  EXPECT_EQ(json["processes"][1]["ended_ns"], 9);
  EXPECT_EQ(json["processes"][1]["dead_since_ns"], 9);
  EXPECT_TRUE(json["processes"][0]["dead_since_ns"].is_null());
}

TEST(ScanAsJson, WhatThereIsNotIsNull) {
  const Json process = Json::parse(scan_as_json(living(), {}, false))["processes"][0];
  for (const char* key : {"parent_pid", "parent_pid_in_namespace", "container", "group", "wait_at_most_ns"}) {
    EXPECT_TRUE(process[key].is_null()) << key;
  }
  const Json& device = process["devices"][0];
  for (const char* key :
       {"limit_source", "group_limit_bytes", "group_used_bytes", "peak_ns", "last_refusal", "waiting"}) {
    EXPECT_TRUE(device[key].is_null()) << key;
  }
  EXPECT_EQ(process["on_limit"], "deny");
}

TEST(ScanAsJson, TellsOfGroupsWaitingAndTheLastRefusal) {
  Scan scan = living();
  Segment& segment = scan.segments[0];
  segment.snapshot.created_realtime_ns = 1000;
  segment.snapshot.created_monotonic_ns = 100;
  segment.snapshot.group = "train";
  segment.snapshot.on_limit = GPUCAP_ON_LIMIT_WAIT;
  segment.snapshot.wait_at_most_ns = 30;
  segment.snapshot.parent_pid = 6;
  segment.origin = {"0123", 4710};
  gpucap_device& gauges = segment.snapshot.devices[0].gauges;
  gauges.limit_source = GPUCAP_LIMIT_FROM_CONTROL;
  gauges.policy_limit_bytes = 5;
  gauges.group_limit_bytes = 6;
  gauges.group_used_bytes = 7;
  gauges.peak_monotonic_ns = 150;
  gauges.waiting_count = 2;
  gauges.waiting_bytes = 8;
  gauges.waiting_monotonic_ns = 160;
  gauges.last_refused_bytes = 9;
  gauges.last_refused_monotonic_ns = 170;
  gauges.last_refused_api = 1;
  gauges.last_refused_by = GPUCAP_REFUSED_BY_GROUP;
  const Json process = Json::parse(scan_as_json(scan, {}, false))["processes"][0];
  EXPECT_EQ(process["group"], "train");
  EXPECT_EQ(process["on_limit"], "wait");
  EXPECT_EQ(process["wait_at_most_ns"], 30);
  EXPECT_EQ(process["container"], "0123");
  EXPECT_EQ(process["parent_pid"], 4710);
  EXPECT_EQ(process["parent_pid_in_namespace"], 6);
  const Json& device = process["devices"][0];
  EXPECT_EQ(device["limit_source"], "set");
  EXPECT_EQ(device["policy_limit_bytes"], 5);
  EXPECT_EQ(device["group_limit_bytes"], 6);
  EXPECT_EQ(device["group_used_bytes"], 7);
  EXPECT_EQ(device["peak_ns"], 1050);
  EXPECT_EQ(device["waiting"], Json::parse(R"({"count":2,"bytes":8,"since_ns":1060})"));
  EXPECT_EQ(device["last_refusal"],
            Json::parse(R"({"bytes":9,"api":"cuMemAlloc_v2","origin":null,"by":"group","time_ns":1070})"));
}

TEST(ScanAsJson, OneLineMeansOneLine) { EXPECT_EQ(scan_as_json(sample(), {}, false).find('\n'), std::string::npos); }

TEST(EventAsJson, HasTheDocumentedShape) {
  EventRecord event;
  event.time_ns = 5;
  event.pid = 7;
  event.operation = GPUCAP_OP_REFUSE;
  event.kind = GPUCAP_KIND_POOL;
  event.api = "cuMemAllocAsync";
  event.bytes = uint64_t{1} << 63;
  event.result = 2;
  event.address = 0x7f00;
  const Json json = Json::parse(event_as_json(event));
  EXPECT_EQ(json, Json::parse(R"({"type":"event","time_ns":5,"pid":7,"thread":0,"gpu":0,"operation":"refuse",
    "kind":"pool","api":"cuMemAllocAsync","origin":null,"bytes":9223372036854775808,"result":2,
    "gpu_uuid":null,"refused_by":null,"result_name":"CUDA_ERROR_OUT_OF_MEMORY","address":"0x7f00","used_after_bytes":0,"latency_ns":0})"));
  EXPECT_EQ(Json::parse(loss_as_json({7, "x", 3})), Json::parse(R"({"type":"lost","pid":7,"events":3})"));
  EXPECT_EQ(Json::parse(end_as_json(4, 3)), Json::parse(R"({"type":"end","events":4,"lost":3})"));
}

TEST(EventAsJson, ALimitTakenAwayHasNoBytes) {
  EventRecord event;
  event.operation = GPUCAP_OP_LIMIT;
  event.bytes = GPUCAP_WIRE_NO_LIMIT;
  EXPECT_TRUE(Json::parse(event_as_json(event))["bytes"].is_null());
  event.bytes = 5;
  event.refused_by = GPUCAP_REFUSED_BY_CARD;
  EXPECT_EQ(Json::parse(event_as_json(event))["bytes"], 5);
  EXPECT_EQ(Json::parse(event_as_json(event))["refused_by"], "card");
}

}  // namespace
}  // namespace gpucap::tools
