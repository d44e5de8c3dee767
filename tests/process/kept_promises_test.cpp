// Promises that a thread keeps of requests which needed nothing: none may be lost, spent twice, or stand in anybody's
// way.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "shim/process/limits.h"
#include "tests/process/quota_case.h"

namespace gpucap {
namespace {

using test::FakeCard;
using test::kGiB;
using test::kMiB;

constexpr uint64_t kStep = 32 * kMiB;

class KeptPromisesTest : public test::QuotaCase {
 protected:
  // A request of a pool that took nothing new, as the hooks make it.
  bool ask_and_keep() {
    if (!try_quickly(*process_, *device_, kStep, true) && ask(kStep) != Verdict::kGranted) return false;
    keep_promise(*device_, GPUCAP_KIND_POOL, kStep);
    return true;
  }
  int64_t reserved() const { return device_->ledger.reserved(); }
};

TEST_F(KeptPromisesTest, APromiseIsKeptForTheNextRequestAndShownToNobody) {
  begin("8G");
  ASSERT_TRUE(ask_and_keep());
  EXPECT_EQ(reserved(), static_cast<int64_t>(kStep));
  EXPECT_EQ(test::promised_bytes(*device_), 0);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(ask_and_keep());
  EXPECT_EQ(reserved(), static_cast<int64_t>(kStep)) << "one promise, however many requests";
  end_kept_promises(*process_, *device_);
  EXPECT_EQ(reserved(), 0);
  ASSERT_TRUE(ask_and_keep());
  EXPECT_EQ(reserved(), static_cast<int64_t>(kStep));
}

// A pool was not asked whether it grew: each such request has a promise that stands for it until it is.
TEST_F(KeptPromisesTest, WhatIsNotAskedAboutIsCoveredByPromisesUntilItIs) {
  begin("8G");
  const int64_t most = most_kept(*device_);
  ASSERT_EQ(most, static_cast<int64_t>(kGiB)) << "a part of the room";
  constexpr int kUncovered = kGiB / kStep - 1;  // one is left to be spent
  const auto ask_unasked = [&] {
    EXPECT_TRUE(try_quickly(*process_, *device_, kStep, true));
    const bool kept = keep_unasked(*device_, kStep);
    if (!kept) {
      all_asked(*device_);
      keep_promise(*device_, GPUCAP_KIND_POOL, kStep);
    }
    return kept;
  };
  EXPECT_FALSE(ask_unasked()) << "how much may be kept is not known yet";
  for (int round = 0; round < 3; ++round) {
    for (int i = 1; i <= kUncovered; ++i) {
      EXPECT_TRUE(ask_unasked());
      EXPECT_GE(reserved(), i * static_cast<int64_t>(kStep));
    }
    EXPECT_FALSE(ask_unasked()) << "it is time to ask";
    EXPECT_EQ(reserved(), most);
  }
  EXPECT_EQ(test::promised_bytes(*device_), 0);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ask_unasked());
  int64_t reserved_then = 0;
  FakeCard::refresh = [&] {
    reserved_then = reserved();
    return false;
  };
  end_kept_promises(*process_, *device_);
  FakeCard::refresh = nullptr;
  EXPECT_EQ(reserved_then, most) << "the driver is asked before the promises end";
  EXPECT_EQ(reserved(), 0);
  EXPECT_FALSE(ask_unasked());
  for (int i = 1; i <= kUncovered; ++i) {
    EXPECT_TRUE(ask_unasked());
    EXPECT_EQ(reserved(), i * static_cast<int64_t>(kStep)) << "and whoever took them leaves the thread none";
  }
}

// Small blocks keep their promises in the same place.
TEST_F(KeptPromisesTest, APromiseThatStandsForSomethingIsNotSpent) {
  begin("8G");
  ASSERT_TRUE(ask_and_keep());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(try_quickly(*process_, *device_, kStep, true));
    ASSERT_TRUE(keep_unasked(*device_, kStep));
  }
  EXPECT_EQ(reserved(), 2 * static_cast<int64_t>(kStep));
  ASSERT_TRUE(try_quickly(*process_, *device_, 2 * kMiB, true));
  settle(*device_, GPUCAP_KIND_LINEAR, 2 * kMiB, 2 * kMiB);
  EXPECT_EQ(reserved(), 2 * static_cast<int64_t>(kStep));
}

TEST_F(KeptPromisesTest, NobodyIsRefusedBecauseOfPromisesThatOthersKeep) {
  begin("8G");
  std::vector<std::thread> threads;
  std::barrier all_there(9);
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      EXPECT_TRUE(ask_and_keep());
      all_there.arrive_and_wait();
      all_there.arrive_and_wait();
    });
  all_there.arrive_and_wait();
  EXPECT_EQ(reserved(), static_cast<int64_t>(8 * kStep));
  EXPECT_TRUE(take(8 * kGiB)) << "all that there is";
  EXPECT_EQ(reserved(), 0);
  all_there.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();
}

// Many may be in the shared lane at once, and its words are for one thread alone.
TEST_F(KeptPromisesTest, NothingIsKeptInTheSharedLane) {
  begin("8G");
  constexpr int kThreads = static_cast<int>(kLanes) + 8;
  std::barrier all_there(kThreads);
  std::atomic<int> sharing{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      const bool shares = this_thread().lane == kSharedLane;
      all_there.arrive_and_wait();
      for (int i = 0; i < 1000 && shares; ++i) {
        EXPECT_EQ(ask(kStep), Verdict::kGranted);
        EXPECT_FALSE(keep_unasked(*device_, kStep));
        keep_promise(*device_, GPUCAP_KIND_POOL, kStep);
      }
      if (shares) ++sharing;
      all_there.arrive_and_wait();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(sharing, 8);
  EXPECT_EQ(reserved(), 0);
  EXPECT_EQ(device_->flights[kSharedLane].kept_promise, 0);
  EXPECT_EQ(test::promised_bytes(*device_), 0);
}

// The first request of a thread, too.
TEST_F(KeptPromisesTest, APromiseEndsInTheLaneThatItBeganIn) {
  begin("8G");
  std::thread([&] {
    EXPECT_TRUE(try_quickly(*process_, *device_, kStep, true));
    EXPECT_NE(lane_of_thread(), kSharedLane);
    begin_flight(*device_);
    EXPECT_EQ(device_->lanes[lane_of_thread()].reserved_bytes, static_cast<int64_t>(kStep));
    settle(*device_, GPUCAP_KIND_LINEAR, kStep, 0);
    end_flight(*device_);
    EXPECT_EQ(device_->lanes[lane_of_thread()].reserved_bytes, 0);
  }).join();
  EXPECT_EQ(device_->lanes[kSharedLane].reserved_bytes, 0);
}

TEST_F(KeptPromisesTest, NearTheCapNothingIsKept) {
  begin("8G");
  ASSERT_TRUE(take(7 * kGiB));
  ASSERT_TRUE(ask_and_keep());
  EXPECT_EQ(reserved(), 0);
}

TEST_F(KeptPromisesTest, AKeptPromiseDoesNotOutlastTheLimitThatItWasMadeUnder) {
  begin("8G");
  ASSERT_TRUE(take(4 * kGiB));
  ASSERT_TRUE(ask_and_keep());
  device_->ledger.set_limit(4 * kGiB);  // as take_over_limit() does
  mark_stale(*device_);
  EXPECT_FALSE(ask_and_keep());
  EXPECT_EQ(reserved(), 0);
}

TEST_F(KeptPromisesTest, AKeptPromiseIsNotGrantedOnceTheDriverHasTakenItsRoom) {
  begin("8G");
  ASSERT_TRUE(take(4 * kGiB));
  ASSERT_TRUE(ask_and_keep());
  FakeCard::truth_bytes += static_cast<int64_t>(4 * kGiB);  // a kernel's local memory: the cap is full
  look_at_rest(*process_, *device_);
  look(*process_, *device_, false);
  EXPECT_FALSE(device_->stale) << "so that only the promise itself can tell";
  EXPECT_FALSE(try_quickly(*process_, *device_, kStep, true));
  EXPECT_FALSE(ask_and_keep());
  EXPECT_EQ(reserved(), 0);
}

TEST_F(KeptPromisesTest, WhatIsKeptIsFreeToTheProgram) {
  begin("8G");
  ASSERT_TRUE(take(4 * kGiB));
  ASSERT_TRUE(ask_and_keep());
  EXPECT_EQ(shown_memory(*process_, *device_).free_bytes, 4 * kGiB);
  ASSERT_EQ(ask(kGiB), Verdict::kGranted);
  EXPECT_EQ(shown_memory(*process_, *device_).free_bytes, 3 * kGiB) << "unlike what a call needs that is under way";
  settle(*device_, GPUCAP_KIND_LINEAR, kGiB, 0);
}

TEST_F(KeptPromisesTest, OnlySmallPromisesAreKept) {
  begin("16G");
  ASSERT_EQ(ask(kGiB), Verdict::kGranted);
  keep_promise(*device_, GPUCAP_KIND_POOL, kGiB);
  EXPECT_EQ(reserved(), 0);
  EXPECT_EQ(test::promised_bytes(*device_), 0);
}

// 98 % of the cap is used, and a request asks for more than half of what is left, again and again.
TEST_F(KeptPromisesTest, RequestsThatTakeNothingNewAreNotLookedAtEachTimeNearTheCap) {
  begin("4G");
  ASSERT_TRUE(take(4 * kGiB - 48 * kMiB));
  const auto steady = [&] {
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(ask_and_keep());
  };
  steady();
  EXPECT_EQ(looks_while_fresh(steady), 0);
  EXPECT_EQ(ask(64 * kMiB), Verdict::kRefused) << "and the cap is where it was";
}

}  // namespace
}  // namespace gpucap
