// Limits that change while the program runs, and observe mode.
#include <algorithm>
#include <fstream>

#include "tests/e2e/told.h"
#include "wire/control.h"

namespace gpucap::e2e {
namespace {

class LiveLimitTest : public World {
 protected:
  void set_limit(pid_t pid, uint64_t bytes, int ordinal = -1) {
    const int found = for_each_segment(pid, [&](int folder, const char* name) {
      int error_number = 0;
      EXPECT_EQ(wire::request_limit(folder, name, ordinal, bytes, &error_number), wire::ControlError::kNone);
    });
    EXPECT_EQ(found, 1);
  }
  // Of the process's linear charges, oldest first.
  std::vector<uint32_t> latencies_ns(pid_t pid) {
    std::vector<uint32_t> found;
    for_each_segment(pid, [&](int folder, const char* name) {
      wire::SegmentReader reader;
      int error_number = 0;
      EXPECT_EQ(reader.open(folder, name, &error_number), wire::ReadError::kNone);
      auto ring = reader.ring();
      gpucap_event event = {};
      while (ring.next(false, &event) == wire::RingStatus::kEvent)
        if (event.operation == GPUCAP_OP_CHARGE && event.kind == GPUCAP_KIND_LINEAR) found.push_back(event.latency_ns);
    });
    return found;
  }
  gpucap_device gauges(pid_t pid, size_t device = 0) { return segment(pid).devices.at(device).gauges; }
};

TEST_F(LiveLimitTest, AnEventTellsHowLongTheDriverTook) {
  Told a(capped("2G"));
  ASSERT_EQ(a.does("start"), 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(a.take("alloc", 100 * kMiB), 0);
  const auto latencies = latencies_ns(a.pid);
  ASSERT_EQ(latencies.size(), 3u);
  for (const uint32_t ns : latencies) {
    EXPECT_GT(ns, 10u);
    EXPECT_LT(ns, 1000000000u);
  }
}

// Of smaller ones not each is timed, but none that is slow goes unseen.
TEST_F(LiveLimitTest, OfSmallerRequestsOneInSixteenIsTimedAndEachThatIsSlow) {
  Told a(capped("2G"));
  ASSERT_EQ(a.does("start"), 0);
  for (int i = 0; i < 32; ++i) ASSERT_EQ(a.take("alloc", 4 * kMiB), 0);
  auto latencies = latencies_ns(a.pid);
  EXPECT_EQ(latencies.size(), 32u);
  const auto untimed = std::count(latencies.begin(), latencies.end(), 0u);
  EXPECT_LE(untimed, 30);
  EXPECT_GE(untimed, 20) << "a machine that stops for 20 ms now and then makes some of them slow";

  Environment slow = capped("2G");
  slow["FAKE_CUDA_SLOW"] = "cuMemAlloc_v2=40";
  Told b(slow);
  ASSERT_EQ(b.does("start"), 0);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(b.take("alloc", 4 * kMiB), 0);
  latencies = latencies_ns(b.pid);
  EXPECT_EQ(latencies.size(), 5u);
  for (const uint32_t ns : latencies) EXPECT_GE(ns, 20'000'000u);
}

TEST_F(LiveLimitTest, ActsAtTheNextRequestAndTakesNothingAway) {
  Told a(capped("2G"));
  ASSERT_EQ(a.does("start"), 0);
  ASSERT_EQ(a.take("alloc", kGiB), 0);
  ASSERT_EQ(a.take("alloc", kGiB), 2);
  set_limit(a.pid, 4 * kGiB);
  EXPECT_EQ(a.take("alloc", kGiB), 0);
  EXPECT_EQ(gauges(a.pid).limit_bytes, 4 * kGiB);
  EXPECT_EQ(gauges(a.pid).limit_source, GPUCAP_LIMIT_FROM_CONTROL);
  set_limit(a.pid, kGiB);  // below what is used
  ASSERT_EQ(a.does("info"), 0);
  EXPECT_EQ(number(a.out, "total"), kGiB);
  EXPECT_EQ(number(a.out, "free"), 0u);
  EXPECT_EQ(a.take("alloc", 2 * kMiB), 2);
  expect_true_figures(a.pid);
  EXPECT_EQ(a.does("give"), 0);
  EXPECT_EQ(a.does("give"), 0);
  EXPECT_EQ(a.take("alloc", 400 * kMiB), 0) << a.err;
  EXPECT_EQ(a.take("alloc", 400 * kMiB), 2);
}

TEST_F(LiveLimitTest, CapsWhatWasOnlyWatchedAndLetsGoAgain) {
  Told a(capped(""));
  ASSERT_EQ(a.does("start"), 0);
  ASSERT_EQ(a.take("alloc", 2 * kGiB), 0);
  set_limit(a.pid, 3 * kGiB);
  EXPECT_EQ(a.take("alloc", kGiB), 2);
  set_limit(a.pid, GPUCAP_WIRE_NO_LIMIT);
  EXPECT_EQ(a.take("alloc", kGiB), 0);
}

TEST_F(LiveLimitTest, OneDeviceOnly) {
  Told a(capped("2G"));
  ASSERT_EQ(a.does("start"), 0);
  set_limit(a.pid, 4 * kGiB, 1);
  EXPECT_EQ(a.take("alloc", 3 * kGiB), 2);
  set_limit(a.pid, 4 * kGiB, 0);
  EXPECT_EQ(a.take("alloc", 3 * kGiB), 0);
}

TEST_F(LiveLimitTest, AGroupsLimitMovesForAllMembers) {
  Environment member = capped("");
  member["GPUCAP_GROUP"] = "g";
  member["GPUCAP_GROUP_LIMIT"] = "3G";
  Told a(member), b(member);
  ASSERT_EQ(a.does("start"), 0);
  ASSERT_EQ(b.does("start"), 0);
  ASSERT_EQ(a.take("alloc", kGiB), 0);
  ASSERT_EQ(b.take("alloc", 2 * kGiB), 2);
  const int directory = open((folder_ + "/segments").c_str(), O_RDONLY | O_DIRECTORY);
  int error_number = 0;
  wire::GroupFile file;
  ASSERT_EQ(file.open(directory, "g", true, &error_number), wire::ControlError::kNone);
  wire::GroupSnapshot snapshot;
  ASSERT_EQ(file.snapshot(&snapshot, &error_number), wire::ControlError::kNone);
  EXPECT_EQ(snapshot.members.size(), 2u);
  ASSERT_EQ(snapshot.devices.size(), 1u);
  EXPECT_EQ(snapshot.devices[0].limit_bytes, 3 * kGiB);
  EXPECT_EQ(snapshot.devices[0].used_bytes, static_cast<int64_t>(kGiB + 2 * kContext));
  ASSERT_EQ(file.set_limit(-1, 5 * kGiB, &error_number), wire::ControlError::kNone);
  EXPECT_EQ(b.take("alloc", 2 * kGiB), 0);
  ASSERT_EQ(file.set_limit(-1, kGiB, &error_number), wire::ControlError::kNone);
  EXPECT_EQ(a.take("alloc", 2 * kMiB), 2);
  close(directory);
}

TEST_F(LiveLimitTest, ObserveRefusesNothingAndTellsWhatItWould) {
  Environment environment = capped("1G");
  environment["GPUCAP_ON_LIMIT"] = "observe";
  Told a(environment);
  ASSERT_EQ(a.does("start"), 0);
  ASSERT_EQ(a.does("info"), 0);
  EXPECT_EQ(number(a.out, "total"), 16 * kGiB) << "the program is told what it would be told without a cap";
  for (const char* way : {"alloc", "create", "async", "array"}) EXPECT_EQ(a.take(way, 512 * kMiB), 0) << way;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.take("alloc", 1000), 0);
  const gpucap_device gauge = gauges(a.pid);
  EXPECT_EQ(gauge.refused_count, 0u);
  EXPECT_EQ(gauge.observed_count, 5u)
      << "three of the four large ones and the first block of small ones, and the first";
  EXPECT_GE(gauge.observed_bytes, 3 * 512 * kMiB);
  EXPECT_EQ(gauge.limit_bytes, kGiB);
  EXPECT_EQ(a.err, "") << "nothing is said without cause";
  expect_true_figures(a.pid);
}

TEST_F(LiveLimitTest, ObserveOfAContextThatWouldNotFit) {
  Environment environment = capped("100M");
  environment["GPUCAP_ON_LIMIT"] = "observe";
  Told a(environment);
  EXPECT_EQ(a.does("start"), 0);
  EXPECT_EQ(a.take("alloc", kGiB), 0);
  EXPECT_EQ(gauges(a.pid).observed_count, 2u);
}

}  // namespace
}  // namespace gpucap::e2e
