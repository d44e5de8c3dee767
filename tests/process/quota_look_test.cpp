// What becomes of NVML's answer: exact and inexact looks, the driver's share, the peak.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/process/quota_case.h"

namespace gpucap {
namespace {

using test::FakeCard;
using test::kGiB;
using test::kMiB;

class QuotaLookTest : public test::QuotaCase {};

TEST_F(QuotaLookTest, DriversShareIsWhatIsNotInOurBooks) {
  begin("8G");
  ASSERT_TRUE(take(kGiB));
  FakeCard::truth_bytes += static_cast<int64_t>(500 * kMiB);
  EXPECT_TRUE(look(*process_, *device_, true));
  EXPECT_EQ(device_->ledger.driver(), static_cast<int64_t>(500 * kMiB));
  EXPECT_EQ(gauge().driver_bytes, static_cast<int64_t>(500 * kMiB));
  EXPECT_EQ(gauge().looked_bytes, kGiB + 500 * kMiB);
  FakeCard::truth_bytes -= static_cast<int64_t>(400 * kMiB);
  look(*process_, *device_, true);
  EXPECT_EQ(device_->ledger.driver(), static_cast<int64_t>(100 * kMiB)) << "and it falls when the driver gives back";
}

// NVML lists a process on a card only while it has a context there.
TEST_F(QuotaLookTest, MemoryOnACardWithoutAContextIsNotForgotten) {
  begin("8G");
  ASSERT_TRUE(take(5 * kGiB));
  FakeCard::truth_bytes = 0;
  look(*process_, *device_, true);
  EXPECT_EQ(device_->ledger.driver(), 0) << "not listed is not the same as holding nothing";
  EXPECT_EQ(used(), 5 * kGiB);
  EXPECT_FALSE(take(4 * kGiB));
}

TEST_F(QuotaLookTest, ManagedMemoryIsChargedButNotLookedForInTheTruth) {
  begin("8G");
  ASSERT_TRUE(take(2 * kGiB, GPUCAP_KIND_MANAGED));
  look(*process_, *device_, true);
  EXPECT_EQ(device_->ledger.driver(), 0) << "the truth lacks managed memory, so it is not missing";
  EXPECT_EQ(used(), 2 * kGiB);
  EXPECT_FALSE(take(7 * kGiB));
  charge(*device_, GPUCAP_KIND_MANAGED, -static_cast<int64_t>(2 * kGiB));
  EXPECT_EQ(device_->managed_bytes, 0);
  EXPECT_TRUE(take(7 * kGiB));
}

TEST_F(QuotaLookTest, InexactLookOnlyRaisesTheDriversShare) {
  begin("8G");
  begin_flight(*device_);  // another thread is in the driver
  FakeCard::truth_bytes = 300 * kMiB;
  look(*process_, *device_, false);
  EXPECT_EQ(device_->ledger.driver(), static_cast<int64_t>(300 * kMiB));
  FakeCard::truth_bytes = 10 * kMiB;  // its free has reached the driver, its charge is not gone yet
  look(*process_, *device_, false);
  EXPECT_EQ(device_->ledger.driver(), static_cast<int64_t>(300 * kMiB)) << "what may be in flight proves nothing";
  EXPECT_TRUE(device_->inexact);
  end_flight(*device_);
  look(*process_, *device_, false);
  EXPECT_EQ(device_->ledger.driver(), static_cast<int64_t>(10 * kMiB));
  EXPECT_FALSE(device_->inexact);
}

TEST_F(QuotaLookTest, MemoryThatWasPromisedIsNotTakenForTheDrivers) {
  begin("8G");
  ASSERT_EQ(ask(kGiB), Verdict::kGranted);
  begin_flight(*device_);
  FakeCard::truth_bytes = kGiB;  // the driver has it, the books do not
  look(*process_, *device_, false);
  EXPECT_EQ(device_->ledger.driver(), 0);
  settle(*device_, GPUCAP_KIND_LINEAR, kGiB, kGiB);
  end_flight(*device_);
  look(*process_, *device_, true);
  EXPECT_EQ(device_->ledger.driver(), 0);
  EXPECT_EQ(used(), kGiB);
}

TEST_F(QuotaLookTest, AFlightThatComesAndGoesWhileNvmlIsAskedSpoilsTheLook) {
  begin("8G");
  ASSERT_TRUE(take(2 * kGiB));
  look(*process_, *device_, true);
  FakeCard::during_look = [&] {
    begin_flight(*device_);
    charge(*device_, GPUCAP_KIND_LINEAR, -static_cast<int64_t>(kGiB));  // freed after NVML had counted
    end_flight(*device_);
  };
  look(*process_, *device_, false);
  EXPECT_TRUE(device_->inexact);
  EXPECT_EQ(device_->ledger.driver(), 0) << "the freed gigabyte is not the driver's";
}

TEST_F(QuotaLookTest, AChargeThatMovedByItselfWhileNvmlWasAskedSpoilsTheLook) {
  begin("8G");
  int calls = 0;
  FakeCard::refresh = [&] { return ++calls % 2 == 0; };  // a pool is found shrunk after NVML has answered
  FakeCard::truth_bytes = 0;
  look(*process_, *device_, false);
  EXPECT_EQ(calls, 2) << "asked before and after";
  EXPECT_TRUE(device_->inexact);
}

TEST_F(QuotaLookTest, ExactLookWaitsForTheCallThatIsUnderWay) {
  begin("8G");
  begin_flight(*device_);
  FakeCard::truth_bytes = 10 * kMiB;
  std::thread other([&] {
    sleep_ms(2);
    end_flight(*device_);
  });
  look(*process_, *device_, true);
  other.join();
  EXPECT_EQ(device_->ledger.driver(), static_cast<int64_t>(10 * kMiB));
}

TEST_F(QuotaLookTest, ExactLookDoesNotWaitForEver) {
  begin("8G");
  begin_flight(*device_);
  const auto from = std::chrono::steady_clock::now();
  EXPECT_TRUE(look(*process_, *device_, true));
  EXPECT_LT(std::chrono::steady_clock::now() - from, std::chrono::seconds(2));
  EXPECT_TRUE(device_->inexact);
  end_flight(*device_);
}

TEST_F(QuotaLookTest, AfterAnInexactLookTheNextComesWithinMilliseconds) {
  begin("8G");
  const uint64_t interval_ns = device_->look_due_ns - device_->looked_at_ns;
  begin_flight(*device_);
  look(*process_, *device_, false);
  end_flight(*device_);
  const int before = FakeCard::looks;
  EXPECT_LE(device_->look_due_ns - device_->looked_at_ns, interval_ns / 10 + 1'000'000);
  while (coarse_ns() <= device_->look_due_ns) sleep_ms(1);  // it ticks every 4 ms
  ASSERT_TRUE(take(kMiB));
  EXPECT_GT(FakeCard::looks, before);
}

TEST_F(QuotaLookTest, WhetherALookFellIntoATimeIsKnown) {
  begin("8G");
  const LookTimes quiet = look_times();
  EXPECT_FALSE(looked_since(quiet));
  LookTimes amid;
  FakeCard::during_look = [&] { amid = look_times(); };
  look(*process_, *device_, true);
  FakeCard::during_look = nullptr;
  EXPECT_TRUE(looked_since(quiet));
  EXPECT_TRUE(looked_since(amid)) << "it was under way, and nobody knows when NVML answered";
  EXPECT_FALSE(looked_since(look_times()));
}

TEST_F(QuotaLookTest, AtRestAnInexactFigureIsPutRightAtOnce) {
  begin("8G");
  begin_flight(*device_);
  FakeCard::truth_bytes = 300 * kMiB;
  look(*process_, *device_, false);
  FakeCard::truth_bytes = 10 * kMiB;
  end_flight(*device_);
  look_at_rest(*process_, *device_);
  EXPECT_EQ(device_->ledger.driver(), static_cast<int64_t>(10 * kMiB));
  EXPECT_EQ(looks_while_fresh([&] { look_at_rest(*process_, *device_); }), 0) << "and is left alone when right";
}

TEST_F(QuotaLookTest, PeakIsOfExactFiguresOnly) {
  begin("8G");
  ASSERT_TRUE(take(kGiB));
  give(kGiB);
  EXPECT_EQ(gauge().peak_bytes, kGiB);
  begin_flight(*device_);
  FakeCard::truth_bytes = 5 * kGiB;  // memory on its way to the driver's books and ours
  look(*process_, *device_, false);
  EXPECT_EQ(device_->ledger.driver(), static_cast<int64_t>(5 * kGiB)) << "caution";
  charge(*device_, GPUCAP_KIND_LINEAR, static_cast<int64_t>(2 * kMiB));  // a moment at which the peak could be raised
  EXPECT_EQ(gauge().peak_bytes, kGiB) << "but a peak stays, so it must be true";
  FakeCard::truth_bytes = 2 * kGiB;
  end_flight(*device_);
  look(*process_, *device_, true);
  EXPECT_EQ(gauge().peak_bytes, 2 * kGiB);
  EXPECT_GT(gauge().peak_monotonic_ns, 0u);
  FakeCard::truth_bytes = 0;
  look(*process_, *device_, true);
  EXPECT_EQ(gauge().peak_bytes, 2 * kGiB) << "a peak does not fall";
}

// A kernel's first launch takes local memory, unseen; the program then synchronises and rests, within 10 ms of the look
// before. Seen on a card with NCCL.
TEST_F(QuotaLookTest, ASynchroniseSoonAfterSomethingNewIsLookedAtAgain) {
  begin("4G");
  FakeCard::truth_bytes += static_cast<int64_t>(600 * kMiB);
  look(*process_, *device_, true);  // finds something new
  FakeCard::truth_bytes += static_cast<int64_t>(186 * kMiB);
  sleep_ms(2);
  look_at_rest(*process_, *device_);
  EXPECT_EQ(used(), 786 * kMiB);
}

}  // namespace
}  // namespace gpucap
