// What one thread sees of the quota: what is granted and what is refused, and when NVML is asked before.
#include "shim/process/quota.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "tests/process/capture.h"
#include "tests/process/quota_case.h"

namespace gpucap {
namespace {

using test::FakeCard;
using test::kGiB;
using test::kMiB;

class QuotaTest : public test::QuotaCase {};

TEST_F(QuotaTest, FreshFiguresAreNotLookedAtAgain) {
  begin("8G");
  EXPECT_EQ(looks_while_fresh([&] {
              ASSERT_TRUE(take(100 * kMiB));
              ASSERT_TRUE(take(100 * kMiB));
              give(200 * kMiB);
            }),
            0);
}

TEST_F(QuotaTest, WithoutALimitNothingIsRefusedHoweverMuch) {
  begin("");
  EXPECT_EQ(ask(uint64_t{1} << 62), Verdict::kGranted);
  settle(*device_, GPUCAP_KIND_LINEAR, uint64_t{1} << 62, 0);
  EXPECT_EQ(device_->ledger.reserved(), 0);
}

TEST_F(QuotaTest, FiguresOfMoreThanTenMillisecondsAreOld) {
  begin("8G");
  const int before = FakeCard::looks;
  const uint64_t interval_ns = device_->look_due_ns - device_->looked_at_ns;
  EXPECT_GE(interval_ns, 10'000'000u);
  if (device_->look_longest_ns < 50'000) {
    EXPECT_LE(interval_ns, 10'000'000u) << "where NVML answers quickly";
  }
  while (coarse_ns() <= device_->look_due_ns) sleep_ms(1);
  ASSERT_TRUE(take(kMiB));
  EXPECT_EQ(FakeCard::looks, before + 1);
}

TEST_F(QuotaTest, MarkedStaleIsLookedAtBeforeTheNextGrant) {
  begin("8G");
  EXPECT_EQ(looks_while_fresh([&] { mark_stale(*device_); }, [&] { ASSERT_EQ(ask(kMiB), Verdict::kGranted); }), 1);
  FakeCard::truth_bytes = 8 * kGiB;
  mark_stale(*device_);
  EXPECT_EQ(ask(2 * kMiB), Verdict::kRefused) << "granted although the driver had taken everything";
}

TEST_F(QuotaTest, MoreThanHalfOfTheHeadroomGrantedIsLookedAt) {
  begin("8G");
  EXPECT_EQ(looks_while_fresh([&] { ASSERT_TRUE(take(4 * kGiB)); }), 0) << "half is not more than half";
  give(4 * kGiB);
  EXPECT_EQ(looks_while_fresh([&] {
              ASSERT_TRUE(take(4 * kGiB));
              ASSERT_TRUE(take(kMiB));
            }),
            1);
}

TEST_F(QuotaTest, WhatTheDriverTookUnseenIsFoundBeforeTheCapIsPassed) {
  begin("8G");
  // Fresh, and then the driver takes 3 GiB that nobody told us of.
  EXPECT_EQ(looks_while_fresh([&] { FakeCard::truth_bytes = 3 * kGiB; },
                              [&] {
                                int granted = 0;
                                while (granted < 1000 && take(256 * kMiB)) ++granted;
                                EXPECT_EQ(granted, 20);
                                EXPECT_LE(FakeCard::truth_bytes, static_cast<int64_t>(8 * kGiB));
                                give(static_cast<uint64_t>(granted) * 256 * kMiB);
                                FakeCard::truth_bytes = 0;
                              }) > 0,
            true);
}

TEST_F(QuotaTest, NothingIsRefusedOnStaleFigures) {
  begin("4G");
  ASSERT_TRUE(take(4 * kGiB));
  EXPECT_FALSE(take(kMiB));
  FakeCard::truth_bytes = kGiB;  // a pool shrank, and its charge is not corrected yet
  EXPECT_TRUE(take(3 * kGiB)) << "there was room";
  EXPECT_EQ(used(), 4 * kGiB);
  EXPECT_FALSE(take(1));
}

TEST_F(QuotaTest, EveryRefusalIsPrecededByALook) {
  begin("4G");
  ASSERT_TRUE(take(4 * kGiB));
  for (int i = 0; i < 20; ++i) {
    const int before = FakeCard::looks;
    EXPECT_EQ(ask(kMiB), Verdict::kRefused);
    EXPECT_GT(FakeCard::looks, before);
  }
}

TEST_F(QuotaTest, ARefusalLeavesNoPromiseBehind) {
  begin("4G");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ask(5 * kGiB), Verdict::kRefused);
  EXPECT_EQ(device_->ledger.reserved(), 0);
  EXPECT_EQ(test::promised_bytes(*device_), 0);
  EXPECT_TRUE(take(4 * kGiB)) << "the whole cap is still there";
}

TEST_F(QuotaTest, PromisesCountUntilTheyAreSettled) {
  begin("4G");
  ASSERT_EQ(ask(3 * kGiB), Verdict::kGranted);
  EXPECT_EQ(test::promised_bytes(*device_), static_cast<int64_t>(3 * kGiB));
  EXPECT_EQ(ask(2 * kGiB), Verdict::kRefused);
  settle(*device_, GPUCAP_KIND_LINEAR, 3 * kGiB, 0);  // the driver failed
  EXPECT_EQ(test::promised_bytes(*device_), 0);
  ASSERT_EQ(ask(2 * kGiB), Verdict::kGranted);
  settle(*device_, GPUCAP_KIND_LINEAR, 2 * kGiB, kGiB);  // took less than was promised
  EXPECT_EQ(used(), kGiB);
}

TEST_F(QuotaTest, NothingAskedIsAlwaysGrantedEvenOverTheCap) {
  begin("4G");
  FakeCard::truth_bytes = 9 * kGiB;
  mark_stale(*device_);
  EXPECT_EQ(ask(0), Verdict::kGranted);
  EXPECT_EQ(used(), 9 * kGiB) << "and the figures are put right on the way";
}

TEST_F(QuotaTest, HugeRequestsDoNotOverflow) {
  begin("4G");
  for (const uint64_t bytes : {uint64_t{1} << 62, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - kMiB})
    EXPECT_EQ(ask(bytes), Verdict::kRefused) << bytes;
  EXPECT_EQ(device_->ledger.reserved(), 0);
}

struct Reclaimed {
  int calls = 0;
  int64_t frees = 0;
};
void reclaim(Process&, Device&, void* argument) {
  auto& reclaimed = *static_cast<Reclaimed*>(argument);
  ++reclaimed.calls;
  FakeCard::truth_bytes -= reclaimed.frees;
  reclaimed.frees = 0;
}

TEST_F(QuotaTest, RoomIsMadeOnceBeforeARefusalAndNotBeforeAGrant) {
  begin("4G");
  Reclaimed reclaimed;
  ASSERT_EQ(reserve(*process_, *device_, {3 * kGiB, 0, reclaim, &reclaimed}), Verdict::kGranted);
  FakeCard::truth_bytes += static_cast<int64_t>(3 * kGiB);
  settle(*device_, GPUCAP_KIND_POOL, 3 * kGiB, 3 * kGiB);
  EXPECT_EQ(reclaimed.calls, 0);
  EXPECT_EQ(reserve(*process_, *device_, {2 * kGiB, 0, reclaim, &reclaimed}), Verdict::kRefused);
  EXPECT_EQ(reclaimed.calls, 1);
  reclaimed.frees = static_cast<int64_t>(2 * kGiB);
  EXPECT_EQ(reserve(*process_, *device_, {2 * kGiB, 0, reclaim, &reclaimed}), Verdict::kGranted)
      << "the room that was made";
  EXPECT_EQ(reclaimed.calls, 2);
}

TEST_F(QuotaTest, ErrnoIsKeptOnEveryPath) {
  begin("4G");
  FakeCard::during_look = [] { errno = ERANGE; };
  errno = EDOM;
  mark_stale(*device_);
  ASSERT_TRUE(take(kGiB));
  EXPECT_EQ(errno, EDOM);
  ASSERT_FALSE(take(5 * kGiB));
  EXPECT_EQ(errno, EDOM);
  look_at_rest(*process_, *device_);
  EXPECT_EQ(errno, EDOM);
}

TEST_F(QuotaTest, WithoutAFigureTheBooksAloneDecideAndItIsSaidOnce) {
  FakeCard::source = GPUCAP_TRUTH_NONE;
  FakeCard::truth_bytes = -1;
  test::Capture errors(STDERR_FILENO);
  process_ = &start("4G");
  device_ = process_->device(0);
  process_->activate(*device_);
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(ask(kGiB), Verdict::kGranted);
    settle(*device_, GPUCAP_KIND_LINEAR, kGiB, kGiB);
  }
  EXPECT_EQ(ask(kMiB), Verdict::kRefused);
  process_->lose_truth(*device_, GPUCAP_TRUTH_NONE);
  EXPECT_EQ(FakeCard::looks, 0) << "not asked again";
  EXPECT_FALSE(look(*process_, *device_, true));
  const std::string text = errors.text();
  EXPECT_EQ(test::count_of(text, "NVML has no figure for this process on GPU 0"), 1) << text;
}

TEST_F(QuotaTest, AReadingThatFailsOnceLeavesTheFiguresAsTheyWere) {
  begin("4G");
  FakeCard::truth_bytes = kGiB;
  look(*process_, *device_, true);
  FakeCard::truth_bytes = -1;
  EXPECT_FALSE(look(*process_, *device_, true));
  EXPECT_EQ(used(), kGiB);
  EXPECT_EQ(ask(4 * kGiB), Verdict::kRefused);
}

TEST_F(QuotaTest, DevicesAreApart) {
  setenv("GPUCAP_LIMIT", "0=4G,1=8G", 1);
  begin("");
  Device& second = *process_->device(1);
  process_->activate(second);
  FakeCard::truth_bytes = 0;
  ASSERT_TRUE(take(4 * kGiB));
  EXPECT_FALSE(take(kMiB));
  FakeCard::truth_bytes = 0;
  EXPECT_EQ(reserve(*process_, second, 8 * kGiB), Verdict::kGranted);
  EXPECT_EQ(reserve(*process_, second, kMiB), Verdict::kRefused);
}

TEST_F(QuotaTest, RefusalIsCountedToldAndWorthReading) {
  begin("4G");
  test::Capture errors(STDERR_FILENO), output(STDOUT_FILENO);
  ASSERT_TRUE(take(kGiB));
  ASSERT_TRUE(take(kGiB, GPUCAP_KIND_POOL));
  FakeCard::truth_bytes += static_cast<int64_t>(512 * kMiB);
  look(*process_, *device_, true);
  refuse(*process_, *device_, test::kAlloc, 3 * kGiB, 2);
  EXPECT_EQ(errors.text(),
            "gpucap: refused cuMemAlloc_v2 of 3.00 GiB on GPU 0: the cap of 4.00 GiB has 2.50 GiB used "
            "(data 1.00 GiB, pools 1.00 GiB, driver 512.00 MiB), 1.50 GiB left [pid " +
                std::to_string(getpid()) + "]\n");
  EXPECT_EQ(output.text(), "");
  EXPECT_EQ(gauge().refused_count, 1u);
  EXPECT_EQ(gauge().refused_bytes, 3 * kGiB);
  EXPECT_EQ(gauge().last_refused_bytes, 3 * kGiB);
  EXPECT_GT(gauge().last_refused_monotonic_ns, 0u);
  EXPECT_EQ(device_->counters[this_thread().lane * device_->api_count + test::kAlloc].refused, 1u);
}

TEST_F(QuotaTest, ManyRefusalsAreAllCountedAndFewAreSaid) {
  begin("4G");
  test::Capture errors(STDERR_FILENO);
  for (int i = 0; i < 5000; ++i) refuse(*process_, *device_, test::kAlloc, kMiB, 2);
  EXPECT_EQ(gauge().refused_count, 5000u);
  const int said = test::count_of(errors.text(), "refused cuMemAlloc_v2");
  EXPECT_GE(said, 1);
  EXPECT_LE(said, 20);
}

}  // namespace
}  // namespace gpucap
