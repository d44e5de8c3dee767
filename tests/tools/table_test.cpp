// The table as a function of a snapshot, tested by what must hold at every size.
#include "tools/top/table.h"

#include <gtest/gtest.h>

#include "tools/common/text_width.h"
#include "tools/top/watch.h"

namespace gpucap::tools {
namespace {

Segment segment_of(uint32_t pid, int64_t used_bytes, uint64_t limit_bytes = uint64_t{4} << 30) {
  Segment segment;
  segment.user = "a-rather-long-user-name";
  segment.liveness.liveness = wire::Liveness::kAlive;
  segment.liveness.viewer_pid = static_cast<int>(pid);
  segment.snapshot.command = {"python", "train.py", "--data",
                              "/a/very/long/path/that/goes/on/and/on/\xe8\xa8\x93\xe7\xb7\xb4"};
  wire::DeviceSnapshot device;
  device.gauges.active = 1;
  device.gauges.linear_bytes = used_bytes;
  device.gauges.peak_bytes = static_cast<uint64_t>(used_bytes);
  device.gauges.limit_bytes = limit_bytes;
  device.gauges.driver_bytes = 0;
  segment.snapshot.devices.push_back(device);
  return segment;
}

Scan scan_of(std::initializer_list<Segment> segments) {
  Scan scan;
  scan.segments = segments;
  scan.monotonic_ns = 90000000000;
  scan.realtime_ns = 1769862896000000000;
  return scan;
}

TEST(TableRows, AreTheActiveDevicesByUse) {
  Segment idle = segment_of(2, 1 << 20);
  idle.snapshot.devices[0].gauges.active = 0;
  Segment both = segment_of(3, 1 << 20);
  both.snapshot.devices.push_back(both.snapshot.devices[0]);
  both.snapshot.devices[1].gauges.ordinal = 1;
  both.snapshot.devices[1].gauges.linear_bytes = 3 << 20;
  const std::vector<TableRow> rows = table_rows(scan_of({idle, both, segment_of(4, 2 << 20)}));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].pid, 3);
  EXPECT_EQ(rows[0].gpu, 1u);
  EXPECT_EQ(rows[1].pid, 4);
  EXPECT_EQ(rows[2].pid, 3);
  EXPECT_EQ(rows[2].gpu, 0u);
  EXPECT_EQ(rows[0].age_seconds, 90u);
}

TEST(Table, ShowsEveryColumnWhereThereIsRoom) {
  Segment watched = segment_of(4711, (int64_t{3} << 30) + (1 << 21), GPUCAP_WIRE_NO_LIMIT);
  watched.snapshot.devices[0].gauges.driver_bytes = -(1 << 21);
  watched.user = "ann";
  Segment capped = segment_of(42, int64_t{1} << 30);
  capped.user = "bob";
  capped.snapshot.command = {"./simulate"};
  capped.snapshot.devices[0].gauges.refused_count = 3;
  capped.snapshot.devices[0].live_count = 17;
  const auto lines = layout_table(table_rows(scan_of({watched, capped})), 0, 0);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], " PID  USER  GPU      USED       CAP   %      PEAK     DRIVER  LIVE  REFUSED    AGE  COMMAND");
  EXPECT_EQ(lines[1].substr(0, lines[1].find("python")),
            "4711  ann     0  3.00 GiB         -   -  3.00 GiB  -2.00 MiB     0        0  1m30s  ");
  EXPECT_EQ(lines[2], "  42  bob     0  1.00 GiB  4.00 GiB  25  1.00 GiB        0 B    17        3  1m30s  ./simulate");
}

TEST(Table, TheDeadComeLastWithTheirPeakAndHowTheyEnded) {
  Segment ended = segment_of(7, int64_t{3} << 30);
  ended.user = "ann";
  ended.snapshot.command = {"./old"};
  ended.snapshot.devices[0].gauges.refused_count = 2;
  ended.liveness.liveness = wire::Liveness::kEnded;
  Segment killed = ended;
  killed.liveness = {wire::Liveness::kKilled, 8};
  Segment living = ended;
  living.liveness = {wire::Liveness::kAlive, 9};
  living.snapshot.devices[0].gauges.linear_bytes = 1 << 20;
  Scan scan = scan_of({ended, killed, living});
  const uint64_t second = 1000000000;
  for (Segment& segment : scan.segments) segment.snapshot.created_realtime_ns = scan.realtime_ns - 100 * second;
  scan.segments[0].dead_since_ns = scan.realtime_ns - 70 * second;
  scan.segments[1].dead_since_ns = scan.realtime_ns - 5 * second;
  const auto lines = layout_table(table_rows(scan), 0, 0);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0],
            "PID  USER  GPU      USED       CAP  %      PEAK  DRIVER  LIVE  REFUSED    AGE  ENDED            COMMAND");
  EXPECT_EQ(lines[1],
            "  9  ann     0  1.00 MiB  4.00 GiB  0  3.00 GiB     0 B     0        2  1m30s  -                ./old");
  EXPECT_EQ(lines[2],
            "  8  ann     0         -  4.00 GiB  -  3.00 GiB       -     -        2  1m35s  killed 5s ago    ./old");
  EXPECT_EQ(lines[3],
            "  7  ann     0         -  4.00 GiB  -  3.00 GiB       -     -        2    30s  ended 1m10s ago  ./old");
}

TEST(Table, ShowsGroupsAndWhoWaitsWhereThereAreAny) {
  Segment waiting = segment_of(7, int64_t{1} << 30);
  waiting.user = "ann";
  waiting.snapshot.command = {"./new"};
  waiting.snapshot.group = "train";
  waiting.snapshot.devices[0].gauges.waiting_count = 2;
  waiting.snapshot.devices[0].gauges.waiting_bytes = uint64_t{2} << 30;
  waiting.snapshot.devices[0].gauges.waiting_monotonic_ns = 76000000000;
  Segment alone = segment_of(8, 0);
  alone.user = "bob";
  alone.snapshot.command = {"./new"};
  const auto lines = layout_table(table_rows(scan_of({waiting, alone})), 0, 0);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(
      lines[0],
      "PID  USER  GROUP  GPU      USED       CAP   %      PEAK  DRIVER  LIVE  REFUSED       WAITING    AGE  COMMAND");
  EXPECT_EQ(
      lines[1],
      "  7  ann   train    0  1.00 GiB  4.00 GiB  25  1.00 GiB     0 B     0        0  2.00 GiB 14s  1m30s  ./new");
  EXPECT_EQ(
      lines[2],
      "  8  bob   -        0       0 B  4.00 GiB   0       0 B     0 B     0        0             -  1m30s  ./new");
}

TEST(DropLongDead, KeepsTheLivingAndWhoDiedLately) {
  Segment dead = segment_of(7, 1);
  dead.liveness.liveness = wire::Liveness::kKilled;
  Scan scan = scan_of({dead, segment_of(8, 1)});
  scan.segments[0].dead_since_ns = scan.realtime_ns - 60000000000;
  Scan kept = scan;
  drop_long_dead(&kept, 60);
  EXPECT_EQ(kept.segments.size(), 2u);
  drop_long_dead(&kept, 59);
  ASSERT_EQ(kept.segments.size(), 1u);
  EXPECT_EQ(kept.segments[0].pid(), 8);
  scan.segments[0].dead_since_ns = scan.realtime_ns;
  drop_long_dead(&scan, 0);
  EXPECT_EQ(scan.segments.size(), 1u) << "0: the living only";
}

TEST(Table, NeverIsWiderThanItMayAtAnyWidth) {
  const Scan scan =
      scan_of({segment_of(4194304, int64_t{4000} << 30), segment_of(1, 0, 0), segment_of(7, 5, GPUCAP_WIRE_NO_LIMIT)});
  size_t columns_before = 0;
  for (size_t width = 1; width <= 200; ++width) {
    const auto lines = layout_table(table_rows(scan), width, 0);
    ASSERT_EQ(lines.size(), 4u);
    for (const std::string& line : lines) EXPECT_LE(display_width(line), width);
    if (width < 40) continue;
    for (const char* title : {"PID", "USED", "CAP", "COMMAND"}) {
      EXPECT_NE(lines[0].find(title), std::string::npos) << title << " at " << width;
    }
    size_t columns = 0;
    for (const char* title : {"USER", "GPU", " % ", "PEAK", "DRIVER", "LIVE", "REFUSED", "AGE"}) {
      columns += lines[0].find(title) != std::string::npos ? 1 : 0;
    }
    EXPECT_GE(columns, columns_before) << "a wider table lost a column at " << width;
    columns_before = columns;
  }
  EXPECT_EQ(columns_before, 8u);
}

TEST(Table, RowsThatDoNotFitTheHeightAreCounted) {
  std::vector<TableRow> rows(10);
  for (size_t height = 1; height <= 12; ++height) {
    const auto lines = layout_table(rows, 80, height);
    EXPECT_LE(lines.size(), height);
    if (height >= 11) {
      EXPECT_EQ(lines.size(), 11u);
    } else if (height >= 2) {
      EXPECT_EQ(lines.back(), "... and " + std::to_string(10 - (height - 2)) + " more");
    }
  }
}

TEST(EmptyTable, SaysWhereItLookedAndWhatToDo) {
  const std::string advice = empty_table_advice({{"/dev/shm/gpucap-7"}, false, true});
  EXPECT_NE(advice.find("/dev/shm/gpucap-7"), std::string::npos);
  EXPECT_NE(advice.find("gpucap run"), std::string::npos);
  EXPECT_EQ(advice.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace gpucap::tools
