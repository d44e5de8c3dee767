// What scripts ask for: fields, separated values, sums.
#include "tools/top/query.h"

#include <gtest/gtest.h>

#include <set>

#include "tools/top/csv.h"
#include "tools/top/totals.h"

namespace gpucap::tools {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

Segment segment_of(int pid, const std::string& user, const std::string& group, uint64_t used_bytes,
                   uint64_t limit_bytes) {
  Segment segment;
  segment.user = user;
  segment.liveness = {wire::Liveness::kAlive, pid};
  segment.snapshot.group = group;
  segment.snapshot.command = {"/usr/bin/python3", "-u", "/home/a/train.py", "--name", "a,b"};
  wire::DeviceSnapshot device;
  device.gauges.active = 1;
  device.gauges.uuid[0] = 0xab;
  device.gauges.linear_bytes = static_cast<int64_t>(used_bytes);
  device.gauges.driver_bytes = 0;
  device.gauges.peak_bytes = used_bytes + kMiB;
  device.gauges.limit_bytes = limit_bytes;
  device.gauges.policy_limit_bytes = GPUCAP_WIRE_NO_LIMIT;
  device.gauges.group_limit_bytes = group.empty() ? GPUCAP_WIRE_NO_LIMIT : 100 * kMiB;
  device.gauges.refused_count = 1;
  segment.snapshot.devices = {device};
  return segment;
}

Scan scan_of(std::initializer_list<Segment> segments) {
  Scan scan;
  scan.segments = segments;
  return scan;
}

std::string csv_of(const Scan& scan, const char* names, CsvStyle style) {
  std::vector<const QueryField*> fields;
  std::string error;
  EXPECT_TRUE(find_fields(names, &fields, &error)) << error;
  std::string text = csv_header(fields, style);
  for (const QueryRow& row : query_rows(scan)) text += csv_row(row, fields, style);
  return text;
}

TEST(QueryFields, HaveEachNameOnce) {
  std::set<std::string> names;
  for (const QueryField& field : query_fields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_NE(std::string(field.meaning), "") << field.name;
    EXPECT_NE(query_fields_help().find(std::string(field.name) + " "), std::string::npos);
  }
}

TEST(QueryFields, AnUnknownOneIsToldWithTheNearest) {
  std::vector<const QueryField*> fields;
  std::string error;
  EXPECT_FALSE(find_fields("pid,refusd", &fields, &error));
  EXPECT_EQ(error, "unknown field 'refusd'; did you mean refused? (gpucap-top --query-fields lists them)");
  EXPECT_FALSE(find_fields("pid,,used", &fields, &error));
  EXPECT_FALSE(find_fields("", &fields, &error));
}

TEST(Csv, IsNvidiaSmisIdiomWithAndWithoutUnits) {
  const Scan scan = scan_of(
      {segment_of(20, "bob", "", 5 * kMiB + 7, GPUCAP_WIRE_NO_LIMIT), segment_of(3, "ann", "g", kMiB, 2 * kMiB)});
  EXPECT_EQ(csv_of(scan, "pid, used,limit,percent,age,refused", {true, true}),
            "pid, used [MiB], limit [MiB], percent [%], age [s], refused\n"
            "3, 1 MiB, 2 MiB, 50 %, 0 s, 1\n"
            "20, 5 MiB, [N/A], [N/A], 0 s, 1\n");
  EXPECT_EQ(csv_of(scan, "pid,used,limit,percent", {true, false}),
            "pid, used [bytes], limit [bytes], percent [%]\n"
            "3, 1048576, 2097152, 50\n"
            "20, 5242887, [N/A], [N/A]\n");
}

TEST(Csv, PlainOneHasNeitherBlanksNorUnitsAndQuotesCommas) {
  const Scan scan = scan_of({segment_of(3, "ann", "", kMiB, GPUCAP_WIRE_NO_LIMIT)});
  EXPECT_EQ(csv_of(scan, "pid,used,limit,command", {}),
            "pid,used,limit,command\n3,1048576,,\"/usr/bin/python3 -u /home/a/train.py --name a,b\"\n");
  EXPECT_EQ(csv_line({"a\"b", " c", "", "d"}, false), "\"a\"\"b\",\" c\",,d\n");
}

TEST(Csv, ShowsOnlyCardsThatAreUsed) {
  Segment segment = segment_of(3, "ann", "", kMiB, kMiB);
  segment.snapshot.devices.push_back(segment.snapshot.devices[0]);
  segment.snapshot.devices[0].gauges.active = 0;
  segment.snapshot.devices[1].gauges.ordinal = 1;
  EXPECT_EQ(csv_of(scan_of({segment}), "gpu", {}), "gpu\n1\n");
}

TEST(Totals, SumByUserAndCountAProcessOnce) {
  Segment two_cards = segment_of(1, "ann", "", 2 * kMiB, 8 * kMiB);
  two_cards.snapshot.devices.push_back(two_cards.snapshot.devices[0]);
  two_cards.snapshot.devices[1].gauges.uuid[0] = 0xcd;
  Segment dead = segment_of(9, "ann", "", kMiB, kMiB);
  dead.liveness.liveness = wire::Liveness::kKilled;
  const auto result =
      totals(scan_of({segment_of(5, "bob", "", 3 * kMiB, GPUCAP_WIRE_NO_LIMIT), two_cards, dead}), TotalsBy::kUser);
  ASSERT_EQ(result.size(), 2u);
  EXPECT_EQ(result[0].name, "ann");
  EXPECT_EQ(result[0].sums.processes, 1u);
  EXPECT_EQ(result[0].sums.used_bytes, 4 * kMiB);
  EXPECT_EQ(result[0].sums.limit_bytes, 16 * kMiB);
  EXPECT_EQ(result[0].sums.largest_peak_bytes, 3 * kMiB);
  EXPECT_EQ(result[0].gpus.size(), 2u);
  EXPECT_EQ(result[1].sums.limit_bytes, std::nullopt) << "somebody without a cap: no sum of caps";
}

TEST(Totals, AGroupsBudgetCountsOnceACard) {
  const Scan scan = scan_of({segment_of(1, "ann", "g", kMiB, kMiB), segment_of(2, "bob", "g", kMiB, kMiB),
                             segment_of(3, "bob", "", kMiB / 2, kMiB)});
  const auto result = totals(scan, TotalsBy::kGroup);
  ASSERT_EQ(result.size(), 2u);
  EXPECT_EQ(result[0].name, "g");
  EXPECT_EQ(result[0].sums.group_limit_bytes, 100 * kMiB);
  EXPECT_EQ(totals_as_csv(result, TotalsBy::kGroup, true),
            "group,processes,gpus,used_bytes,limit_bytes,group_limit_bytes,largest_peak_bytes,waiting_count,"
            "waiting_bytes,refused_count\n"
            "g,2,1,2097152,2097152,104857600,2097152,0,0,2\n"
            ",1,1,524288,1048576,,1572864,0,0,1\n");
  const auto lines = totals_as_table(result, TotalsBy::kGroup);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "GROUP  PROCESSES  GPUS      USED      CAPS   BUDGET  TOP PEAK  WAITING  REFUSED");
  EXPECT_EQ(lines[1], "g              2     1  2.00 MiB  2.00 MiB  100 MiB  2.00 MiB        -        2");
  EXPECT_EQ(lines[2], "-              1     1   512 KiB  1.00 MiB        -  1.50 MiB        -        1");
}

TEST(ProgramName, IsTheScriptOfAnInterpreter) {
  EXPECT_EQ(program_name({"/opt/sim/simulate", "--steps", "3"}), "simulate");
  EXPECT_EQ(program_name({"/usr/bin/python3.11", "-u", "/a/train.py", "x"}), "python3.11 train.py");
  EXPECT_EQ(program_name({"python3", "-m", "torch.distributed.run", "x.py"}), "python3 -m torch.distributed.run");
  EXPECT_EQ(program_name({"python", "-c", "import torch"}), "python -c");
  EXPECT_EQ(program_name({"python"}), "python");
  EXPECT_EQ(program_name({}), "");
}

}  // namespace
}  // namespace gpucap::tools
