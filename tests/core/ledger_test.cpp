#include "shim/core/ledger.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace gpucap::core {
namespace {

TEST(Ledger, GrantsUpToTheLimitAndNotOneByteMore) {
  Ledger ledger;
  ledger.set_limit(100);
  ASSERT_TRUE(ledger.try_reserve(60));
  ledger.settle(60, 60);
  EXPECT_FALSE(ledger.try_reserve(41));
  EXPECT_TRUE(ledger.try_reserve(40));
  ledger.settle(40, 40);
  EXPECT_EQ(ledger.headroom(), 0u);
  EXPECT_FALSE(ledger.try_reserve(1));
}

TEST(Ledger, PromiseCountsUntilItIsSettled) {
  Ledger ledger;
  ledger.set_limit(100);
  ASSERT_TRUE(ledger.try_reserve(80));
  EXPECT_FALSE(ledger.try_reserve(30));
  EXPECT_EQ(ledger.used(), 0) << "a promise is not shown as use";
  ledger.settle(80, 0);  // the driver refused
  EXPECT_TRUE(ledger.try_reserve(100));
}

TEST(Ledger, SettlesForLessThanWasPromised) {
  Ledger ledger;
  ledger.set_limit(100);
  ASSERT_TRUE(ledger.try_reserve(64));
  ledger.settle(64, 32);
  EXPECT_EQ(ledger.used(), 32);
  EXPECT_EQ(ledger.headroom(), 68u);
}

TEST(Ledger, DriverShareTakesFromTheLimit) {
  Ledger ledger;
  ledger.set_limit(100);
  ledger.set_driver(70);
  EXPECT_FALSE(ledger.try_reserve(31));
  EXPECT_TRUE(ledger.try_reserve(30));
}

TEST(Ledger, OverTheLimitRefusesWithoutGoingNegative) {
  Ledger ledger;
  ledger.set_limit(1000);
  ledger.charge(900);
  ledger.set_limit(100);
  EXPECT_EQ(ledger.headroom(), 0u);
  EXPECT_FALSE(ledger.try_reserve(1));
  ledger.charge(-900);
  ledger.set_driver(-5);
  EXPECT_EQ(ledger.used(), 0);
}

TEST(Ledger, ZeroLimitRefusesEverything) {
  Ledger ledger;
  ledger.set_limit(0);
  EXPECT_FALSE(ledger.try_reserve(1));
}

TEST(Ledger, WithoutALimitEverythingFits) {
  Ledger ledger;
  EXPECT_TRUE(ledger.try_reserve(UINT64_MAX));
  ledger.settle(UINT64_MAX, 0);
  EXPECT_EQ(ledger.headroom(), kNoLimit);
}

TEST(Ledger, HugeRequestsDoNotWrapAround) {
  Ledger ledger;
  ledger.set_limit(uint64_t{1} << 40);
  for (const uint64_t bytes : {UINT64_MAX, UINT64_MAX - 1, uint64_t{1} << 63, uint64_t{1} << 62})
    EXPECT_FALSE(ledger.try_reserve(bytes));
  EXPECT_EQ(ledger.reserved(), 0);
}

TEST(Ledger, ThreadsTogetherNeverPassTheLimit) {
  Ledger ledger;
  constexpr int64_t kLimit = 1000;
  ledger.set_limit(kLimit);
  std::atomic<int64_t> real{0};
  std::atomic<int64_t> highest{0};
  std::atomic<int> granted{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20000; ++i) {
        const auto bytes = static_cast<uint64_t>(1 + (i * 7 + t * 13) % 300);
        if (!ledger.try_reserve(bytes)) continue;
        granted.fetch_add(1);
        const int64_t now = real.fetch_add(static_cast<int64_t>(bytes)) + static_cast<int64_t>(bytes);
        int64_t seen = highest.load();
        while (now > seen && !highest.compare_exchange_weak(seen, now)) {
        }
        ledger.settle(bytes, bytes);
        real.fetch_sub(static_cast<int64_t>(bytes));
        ledger.charge(-static_cast<int64_t>(bytes));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(highest.load(), kLimit);
  EXPECT_GT(granted.load(), 1000);
  EXPECT_EQ(ledger.used(), 0);
  EXPECT_EQ(ledger.reserved(), 0);
}

}  // namespace
}  // namespace gpucap::core
