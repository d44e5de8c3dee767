// What others see of this process: read back through a mapping of the segment's file, as a reader would.
#include "shim/process/telemetry.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "shim/process/quota.h"
#include "tests/process/capture.h"
#include "tests/process/fake_card.h"
#include "wire/segment_reader.h"

namespace gpucap {
namespace {

using test::FakeCard;
using test::kGiB;
using test::kMiB;

class TelemetryTest : public test::ProcessCase {
 protected:
  void begin(const char* limit = "4G") {
    process_ = &start(limit);
    device_ = process_->device(0);
    process_->activate(*device_);
  }
  std::string segments() const { return folder_ + "/segments"; }
  std::string only_file() const {
    std::string name;
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(segments())) {
      name = entry.path().filename();
      ++count;
    }
    EXPECT_EQ(count, 1);
    return name;
  }
  // Through a copy of the file: a reader inside the owner would drop the owner's lock when it closes.
  wire::SegmentSnapshot snapshot(std::vector<gpucap_event>* events = nullptr) {
    wire::SegmentSnapshot result;
    wire::SegmentReader reader;
    int error_number = 0;
    const std::string copy = folder_ + "/copy";
    std::filesystem::copy_file(segments() + "/" + only_file(), copy, std::filesystem::copy_options::overwrite_existing);
    const int directory = open(folder_.c_str(), O_RDONLY | O_DIRECTORY);
    EXPECT_EQ(reader.open(directory, "copy", &error_number), wire::ReadError::kNone);
    EXPECT_EQ(reader.snapshot(&result, &error_number), wire::ReadError::kNone);
    if (events != nullptr) {
      auto ring = reader.ring();
      gpucap_event event;
      while (ring.next(false, &event) == wire::RingStatus::kEvent) events->push_back(event);
      EXPECT_EQ(ring.lost(), 0u);
    }
    close(directory);
    return result;
  }
  Event alloc(uint64_t bytes) {
    Event event;
    event.api = test::kAlloc;
    event.kind = GPUCAP_KIND_LINEAR;
    event.address = 0x7f0000000000;
    event.bytes = bytes;
    event.took_ns = 1234;
    return event;
  }

  Process* process_ = nullptr;
  Device* device_ = nullptr;
};

TEST_F(TelemetryTest, SegmentSaysWhoWeAreAndWhatTheDevicesAre) {
  setenv("GPUCAP_RUN_ID", "run-5", 1);
  begin("0=4G");
  const wire::SegmentSnapshot seen = snapshot();
  EXPECT_EQ(seen.pid, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(seen.uid, geteuid());
  EXPECT_EQ(seen.run_id, "run-5");
  EXPECT_EQ(seen.version, "9.9.9");
  ASSERT_EQ(seen.devices.size(), 2u);
  EXPECT_EQ(seen.devices[0].name, "Fake Card 0");
  EXPECT_EQ(seen.devices[1].name, "Fake Card 1");
  EXPECT_EQ(seen.devices[1].gauges.uuid[0], 0xa1);
  EXPECT_EQ(seen.devices[0].gauges.physical_bytes, 16 * kGiB);
  EXPECT_EQ(seen.devices[0].gauges.limit_bytes, 4 * kGiB);
  EXPECT_EQ(seen.devices[1].gauges.limit_bytes, GPUCAP_WIRE_NO_LIMIT);
  EXPECT_EQ(seen.devices[0].gauges.active, 1u);
  EXPECT_EQ(seen.devices[1].gauges.active, 0u);
  EXPECT_EQ(seen.devices[0].gauges.truth, static_cast<uint32_t>(GPUCAP_TRUTH_NVML));
}

TEST_F(TelemetryTest, FolderIsOursAlone) {
  umask(0);
  begin();
  struct stat status {};
  ASSERT_EQ(stat(segments().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(stat((segments() + "/" + only_file()).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(TelemetryTest, GaugesByKindAddUpToWhatIsUsed) {
  begin();
  const std::pair<gpucap_kind, uint64_t> charges[] = {{GPUCAP_KIND_LINEAR, 100 * kMiB},
                                                      {GPUCAP_KIND_ARRAY, 20 * kMiB},
                                                      {GPUCAP_KIND_POOL, 64 * kMiB},
                                                      {GPUCAP_KIND_VMM, 8 * kMiB},
                                                      {GPUCAP_KIND_MANAGED, 6 * kMiB}};
  for (const auto& [kind, bytes] : charges) {
    ASSERT_EQ(reserve(*process_, *device_, bytes), Verdict::kGranted);
    if (kind != GPUCAP_KIND_MANAGED) FakeCard::truth_bytes += static_cast<int64_t>(bytes);
    settle(*device_, kind, bytes, bytes);
    count_live(*device_, 1);
  }
  FakeCard::truth_bytes += static_cast<int64_t>(500 * kMiB);
  look(*process_, *device_, true);
  const wire::SegmentSnapshot seen = snapshot();
  const gpucap_device& gauges = seen.devices[0].gauges;
  EXPECT_EQ(gauges.linear_bytes, static_cast<int64_t>(100 * kMiB));
  EXPECT_EQ(gauges.array_bytes, static_cast<int64_t>(20 * kMiB));
  EXPECT_EQ(gauges.pool_bytes, static_cast<int64_t>(64 * kMiB));
  EXPECT_EQ(gauges.vmm_bytes, static_cast<int64_t>(8 * kMiB));
  EXPECT_EQ(gauges.managed_bytes, static_cast<int64_t>(6 * kMiB));
  EXPECT_EQ(gauges.driver_bytes, static_cast<int64_t>(500 * kMiB));
  EXPECT_EQ(seen.devices[0].reserved_bytes, 0);
  EXPECT_EQ(seen.devices[0].live_count, 5);
  EXPECT_EQ(gauges.looked_bytes, static_cast<uint64_t>(FakeCard::truth_bytes));
  EXPECT_EQ(seen.devices[0].used_bytes(), 698 * kMiB);
  EXPECT_EQ(seen.devices[0].used_bytes(), static_cast<uint64_t>(device_->ledger.used()));
  EXPECT_EQ(seen.devices[0].gauges.peak_bytes, 698 * kMiB);
}

TEST_F(TelemetryTest, EventsTellWhatHappenedToWhomAndWhen) {
  begin();
  thread_words.origin = test::kFree;
  process_->telemetry().record(*device_, alloc(kMiB));
  thread_words.origin = 0;
  std::thread([&] {
    Event event = alloc(kMiB);
    event.operation = GPUCAP_OP_RELEASE;
    event.api = test::kFree;
    process_->telemetry().record(*device_, event);
  }).join();
  Event failed = alloc(8 * kGiB);
  failed.operation = GPUCAP_OP_FAIL;
  failed.result = 700;
  process_->telemetry().record(*process_->device(1), failed);
  std::vector<gpucap_event> events;
  const wire::SegmentSnapshot seen = snapshot(&events);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].api, test::kAlloc);
  EXPECT_EQ(events[0].origin, test::kFree);
  EXPECT_EQ(events[0].operation, GPUCAP_OP_CHARGE);
  EXPECT_EQ(events[0].kind, GPUCAP_KIND_LINEAR);
  EXPECT_EQ(events[0].bytes, kMiB);
  EXPECT_EQ(events[0].address, 0x7f0000000000u);
  EXPECT_EQ(events[0].latency_ns, 1234u);
  EXPECT_EQ(events[0].thread, static_cast<uint32_t>(syscall(SYS_gettid)));
  EXPECT_EQ(events[1].origin, 0);
  EXPECT_EQ(events[1].operation, GPUCAP_OP_RELEASE);
  EXPECT_NE(events[1].thread, events[0].thread);
  EXPECT_EQ(events[2].device, 1);
  EXPECT_EQ(events[2].result, 700);
  EXPECT_LE(events[0].monotonic_ns, events[1].monotonic_ns);
  EXPECT_GE(events[0].monotonic_ns, seen.created_monotonic_ns);
  EXPECT_EQ(seen.devices[0].counters[test::kAlloc].calls, 1u);
  EXPECT_EQ(seen.devices[0].counters[test::kAlloc].bytes, kMiB);
  EXPECT_EQ(seen.devices[1].counters[test::kAlloc].calls, 0u) << "what failed is not a call that succeeded";
}

TEST_F(TelemetryTest, ALookThatFindsTheDriversShareChangedIsAnEvent) {
  begin();
  look(*process_, *device_, true);
  FakeCard::truth_bytes = 518 * kMiB;
  look(*process_, *device_, true);
  look(*process_, *device_, true);
  std::vector<gpucap_event> events;
  const wire::SegmentSnapshot seen = snapshot(&events);
  ASSERT_EQ(events.size(), 1u) << "and no event where nothing changed";
  EXPECT_EQ(events[0].operation, GPUCAP_OP_DRIVER);
  EXPECT_EQ(events[0].bytes, 518 * kMiB);
  EXPECT_EQ(seen.devices[0].gauges.look_count, 3u);
}

TEST_F(TelemetryTest, EventsOfManyThreadsAreAllThere) {
  begin();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) process_->telemetry().record(*device_, alloc(static_cast<uint64_t>(i)));
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<gpucap_event> events;
  const wire::SegmentSnapshot seen = snapshot(&events);
  EXPECT_EQ(events.size() + seen.events_dropped, 8000u);
  EXPECT_EQ(seen.devices[0].counters[test::kAlloc].calls, 8000u);
}

class NoFolder : public TelemetryTest {};
TEST_F(NoFolder, GaugesGoOnInMemoryOfOurOwnAndItIsSaidOnce) {
  setenv("GPUCAP_DIR", "/proc/no/such/folder", 1);
  test::Capture errors(STDERR_FILENO);
  begin();
  process_->activate(*process_->device(1));
  const std::string text = errors.text();
  EXPECT_EQ(test::count_of(text, "\n"), 1) << text;
  EXPECT_NE(text.find("cannot publish figures in /proc/no/such/folder"), std::string::npos) << text;
  EXPECT_NE(text.find("the cap holds"), std::string::npos) << text;
  EXPECT_NE(device_->gauge, process_->device(1)->gauge) << "each device has its own";
  EXPECT_NE(device_->counters, process_->device(1)->counters);
  ASSERT_EQ(reserve(*process_, *device_, kGiB), Verdict::kGranted);
  settle(*device_, GPUCAP_KIND_LINEAR, kGiB, kGiB);
  FakeCard::truth_bytes = kGiB;
  EXPECT_EQ(device_->gauge->linear_bytes, static_cast<int64_t>(kGiB));
  EXPECT_EQ(process_->device(1)->gauge->linear_bytes, 0);
  EXPECT_EQ(reserve(*process_, *device_, 4 * kGiB), Verdict::kRefused);
  process_->telemetry().record(*device_, alloc(kGiB));  // into nothing, without harm
  EXPECT_EQ(device_->counters[this_thread().lane * device_->api_count + test::kAlloc].calls, 1u);
  Process::at_exit();
}

}  // namespace
}  // namespace gpucap
