// What makes a call quick must not make it wrong: lanes of threads, looks that are spared. Promises that are kept: see
// kept_promises_test.cpp.
#include <gtest/gtest.h>

#include <barrier>
#include <set>
#include <thread>
#include <vector>

#include "tests/process/quota_case.h"

namespace gpucap {
namespace {

using test::FakeCard;
using test::kGiB;
using test::kMiB;

class QuickCallsTest : public test::QuotaCase {
 protected:
  int64_t live() const {
    int64_t sum = 0;
    for (uint32_t lane = 0; lane < kLanes; ++lane) sum += device_->lanes[lane].live_count;
    return sum;
  }
};

TEST_F(QuickCallsTest, ThreadsBeyondTheLanesShareOneAndNothingIsLost) {
  begin("8G");
  constexpr int kThreads = static_cast<int>(kLanes) + 8, kCalls = 20000;
  std::barrier all_there(kThreads);
  std::vector<uint32_t> lanes(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      lanes[static_cast<size_t>(t)] = this_thread().lane;
      all_there.arrive_and_wait();
      for (int i = 0; i < kCalls; ++i) {
        begin_flight(*device_);
        count_live(*device_, 1);
        process_->telemetry().record_call(*device_, {test::kAlloc, GPUCAP_OP_CHARGE, GPUCAP_KIND_LINEAR}, 0x1000, 3);
        end_flight(*device_);
      }
      all_there.arrive_and_wait();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(live(), int64_t{kThreads} * kCalls);
  uint64_t calls = 0, bytes = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    calls += device_->counters[lane * device_->api_count + test::kAlloc].calls;
    bytes += device_->counters[lane * device_->api_count + test::kAlloc].bytes;
  }
  EXPECT_EQ(calls, uint64_t{kThreads} * kCalls);
  EXPECT_EQ(bytes, uint64_t{kThreads} * kCalls * 3);
  EXPECT_EQ(flights_begun(*device_), uint64_t{kThreads} * kCalls);
  EXPECT_TRUE(all_ended(*device_, flights_begun(*device_)));
  const std::multiset<uint32_t> taken(lanes.begin(), lanes.end());
  for (uint32_t lane = 1; lane < kLanes; ++lane)
    EXPECT_LE(taken.count(lane), 1u) << "two threads write to lane " << lane;
  EXPECT_GE(taken.count(kSharedLane), 8u);
}

TEST_F(QuickCallsTest, LanesOfThreadsThatEndedAreGivenOutAgain) {
  begin("8G");
  for (int t = 0; t < 200; ++t) {
    uint32_t lane = kSharedLane;
    std::thread([&] {
      lane = this_thread().lane;
      count_live(*device_, 1);
    }).join();
    ASSERT_NE(lane, kSharedLane) << "after " << t << " threads";
  }
  EXPECT_EQ(live(), 200) << "what they counted stays";
}

// Nothing has grown in our books since the look, and yet the room is gone.
TEST_F(QuickCallsTest, ALargeRequestIsLookedAtWhateverTheBooksSay) {
  begin("4G");
  ASSERT_TRUE(take(512 * kMiB));
  EXPECT_GE(looks_while_fresh([] { FakeCard::truth_bytes = static_cast<int64_t>(3584 * kMiB); },
                              [&] { EXPECT_EQ(ask(3 * kGiB), Verdict::kRefused); }),
            1);
}

TEST_F(QuickCallsTest, WhatTakesMostOfTheRoomThatWasLeftIsLookedAtFirst) {
  begin("4G");
  ASSERT_TRUE(take(2 * kGiB));
  EXPECT_EQ(looks_while_fresh([&] { EXPECT_TRUE(take(100 * kMiB)); }), 0);
  // Half a GiB of the room at the look is gone; as much again would pass its half.
  EXPECT_EQ(looks_while_fresh([&] {
              EXPECT_TRUE(take(512 * kMiB));
              EXPECT_TRUE(take(512 * kMiB));
              give(kGiB);
            }),
            1);
}

// NVML takes the longer, the more blocks a process has.
TEST_F(QuickCallsTest, LooksThatTakeLongAreMadeRarer) {
  begin("8G");
  look(*process_, *device_, true);
  EXPECT_LT(device_->look_due_ns - device_->looked_at_ns, 1'000'000'000u);
  FakeCard::during_look = [] { sleep_ms(2); };
  look(*process_, *device_, true);
  EXPECT_LT(device_->look_due_ns - device_->looked_at_ns, 100'000'000u) << "once may be the machine's doing";
  look(*process_, *device_, true);
  const uint64_t interval_ns = device_->look_due_ns - device_->looked_at_ns;
  EXPECT_GE(interval_ns, 400'000'000u) << "2 ms are half a per cent of that";
  EXPECT_LE(interval_ns, 1'000'000'000u) << "but never rarer than once a second";
  FakeCard::during_look = nullptr;
  const int before = FakeCard::looks;
  sleep_ms(20);
  look_if_stale(*process_, *device_);
  EXPECT_EQ(FakeCard::looks, before);
  mark_stale(*device_);
  look_if_stale(*process_, *device_);
  EXPECT_EQ(FakeCard::looks, before + 1) << "what may have changed is looked at all the same";
}

// A process that swings between little and much memory, and whose looks at the low end come from marks.
TEST_F(QuickCallsTest, AQuickAnswerDoesNotPutForwardWhatASlowOnePutOff) {
  begin("8G");
  FakeCard::during_look = [] { sleep_ms(2); };
  for (int i = 0; i < 2; ++i) look(*process_, *device_, true);
  const uint64_t due_ns = device_->look_due_ns;
  EXPECT_GE(due_ns - device_->looked_at_ns, 400'000'000u);
  FakeCard::during_look = nullptr;
  mark_stale(*device_);
  look_if_stale(*process_, *device_);
  EXPECT_GE(device_->look_due_ns, due_ns);
  FakeCard::truth_bytes += static_cast<int64_t>(kMiB);
  mark_stale(*device_);
  look_if_stale(*process_, *device_);
  EXPECT_LT(device_->look_due_ns, due_ns) << "but something new is followed closely";
}

// The driver's share has stood still for seconds.
TEST_F(QuickCallsTest, FiguresThatHaveHeldForLongAreAskedForMoreRarely) {
  begin("8G");
  FakeCard::during_look = [] { usleep(200); };
  // A slow machine may stretch single answers, not each of a few.
  const auto shortest_interval_ns = [&] {
    uint64_t shortest = UINT64_MAX;
    for (int i = 0; i < 10; ++i) {
      look(*process_, *device_, true);
      const uint64_t interval_ns = device_->look_due_ns - device_->looked_at_ns;
      if (i > 0 && interval_ns < shortest) shortest = interval_ns;
    }
    return shortest;
  };
  const uint64_t while_new_ns = shortest_interval_ns();
  EXPECT_GE(while_new_ns, 200'000u * 200);
  device_->driver_changed_at_ns = monotonic_ns() - 3'000'000'000u;
  const uint64_t settled_ns = shortest_interval_ns();
  EXPECT_GE(settled_ns, 200'000u * 1000) << "200 us are a tenth of a per cent of that";
  FakeCard::truth_bytes += static_cast<int64_t>(kMiB);
  EXPECT_LT(shortest_interval_ns(), settled_ns / 2) << "and something new is looked at as often as before";
  FakeCard::during_look = nullptr;
}

// Another thread is in the driver all the time: a free that waits for a kernel.
TEST_F(QuickCallsTest, NvmlIsNotAskedInVainWhileACallIsUnderWay) {
  begin("8G");
  ASSERT_TRUE(take(kGiB));
  begin_flight(*device_);
  const auto ask_when_due = [&] {
    device_->look_due_ns = 0;
    const int before = FakeCard::looks;
    EXPECT_EQ(ask(kMiB), Verdict::kGranted);
    settle(*device_, GPUCAP_KIND_LINEAR, kMiB, 0);
    return FakeCard::looks - before;
  };
  const uint64_t began_ns = monotonic_ns();
  EXPECT_EQ(ask_when_due(), 1) << "at the end of the wait";
  const uint64_t waited_ns = monotonic_ns() - began_ns;
  EXPECT_GE(device_->look_due_ns, began_ns + 5 * waited_ns) << "and the next wait is not the next request's";
  EXPECT_TRUE(device_->inexact);
  std::thread other([&] {
    sleep_ms(2);
    end_flight(*device_);
  });
  EXPECT_EQ(ask_when_due(), 1) << "once it is quiet";
  EXPECT_FALSE(device_->inexact);
  other.join();
}

// A mark is not used up by a reading that says nothing.
TEST_F(QuickCallsTest, AMarkOutlastsALookThatWasNotExact) {
  begin("8G");
  ASSERT_TRUE(take(kGiB));
  ASSERT_EQ(ask(512 * kMiB), Verdict::kGranted);  // of a call that is about to begin
  begin_flight(*device_);
  mark_stale(*device_);
  FakeCard::truth_bytes += static_cast<int64_t>(512 * kMiB);  // the driver's own
  look_at_rest(*process_, *device_);
  EXPECT_EQ(device_->ledger.driver(), 0) << "it may be what was promised";
  EXPECT_TRUE(device_->stale);
  settle(*device_, GPUCAP_KIND_LINEAR, 512 * kMiB, 0);
  end_flight(*device_);
  EXPECT_TRUE(take(kMiB));
  EXPECT_EQ(device_->ledger.driver(), static_cast<int64_t>(512 * kMiB));
  EXPECT_FALSE(device_->stale);
}

TEST_F(QuickCallsTest, EventsOfAThreadAreNeverToldAsEarlierThanTheOneBefore) {
  begin("8G");
  ThreadWords& thread = this_thread();
  const auto told = [&](gpucap_operation operation) {
    process_->telemetry().record_call(*device_, {test::kFree, operation, GPUCAP_KIND_POOL}, 0, 0);
    return thread.told_ns;
  };
  const uint64_t began_ns = monotonic_ns();
  thread.call_ended_ns = began_ns;  // timed by the exact clock, which is ahead of the coarse one
  uint64_t last_ns = told(GPUCAP_OP_RELEASE);
  EXPECT_EQ(last_ns, began_ns);
  for (int i = 0; i < 200; ++i) {
    const uint64_t now_ns = told(GPUCAP_OP_RELEASE);
    ASSERT_GE(now_ns, last_ns);
    last_ns = now_ns;
  }
  sleep_ms(30);
  EXPECT_GT(told(GPUCAP_OP_RELEASE), last_ns) << "and time goes on without an exact reading";
  EXPECT_LE(thread.told_ns, monotonic_ns());
}

}  // namespace
}  // namespace gpucap
