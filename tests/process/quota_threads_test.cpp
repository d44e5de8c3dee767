// Many threads at the cap, with a card that moves as they go: what NVML would show never passes the limit, and nothing
// is left of promises and charges when all is given back.
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "shim/process/quota.h"
#include "tests/process/fake_card.h"

namespace gpucap {
namespace {

using test::FakeCard;
using test::kGiB;
using test::kMiB;

class QuotaThreadsTest : public test::ProcessCase {
 protected:
  static constexpr int kThreads = 6;

  void begin(const char* limit) {
    setenv("GPUCAP_LOG", "off", 1);
    process_ = &start(limit);
    device_ = process_->device(0);
    process_->activate(*device_);
    limit_ = static_cast<int64_t>(device_->ledger.limit());
  }

  // The driver takes memory: the moment at which a cap is kept or broken.
  void card_takes(int64_t bytes) {
    const int64_t now = FakeCard::truth_bytes.fetch_add(bytes) + bytes;
    if (now > limit_) passed_.fetch_add(1);
    int64_t seen = most_.load();
    while (now > seen && !most_.compare_exchange_weak(seen, now)) {
    }
  }
  static void card_gives(int64_t bytes) { FakeCard::truth_bytes -= bytes; }

  bool take(uint64_t bytes) {
    if (reserve(*process_, *device_, bytes) != Verdict::kGranted) return false;
    begin_flight(*device_);
    card_takes(static_cast<int64_t>(bytes));
    if (bytes % 3 == 0) sched_yield();
    settle(*device_, GPUCAP_KIND_LINEAR, bytes, bytes);
    end_flight(*device_);
    return true;
  }
  void give(uint64_t bytes) {
    begin_flight(*device_);
    card_gives(static_cast<int64_t>(bytes));
    if (bytes % 5 == 0) sched_yield();
    charge(*device_, GPUCAP_KIND_LINEAR, -static_cast<int64_t>(bytes));
    end_flight(*device_);
  }

  // Takes pieces up to the cap and gives them back, over and over.
  void churn(unsigned seed, int rounds) {
    std::mt19937 random(seed);
    for (int round = 0; round < rounds; ++round) {
      std::vector<uint64_t> mine;
      for (int i = 0; i < 8; ++i) {
        const uint64_t bytes = (1 + random() % 128) * 2 * kMiB;
        if (take(bytes)) {
          mine.push_back(bytes);
          granted_.fetch_add(1);
        } else {
          refused_.fetch_add(1);
        }
      }
      for (const uint64_t bytes : mine) give(bytes);
    }
  }

  void expect_all_given_back() {
    look(*process_, *device_, true);
    EXPECT_EQ(device_->ledger.committed(), 0);
    EXPECT_EQ(device_->ledger.reserved(), 0);
    EXPECT_EQ(device_->ledger.driver(), FakeCard::truth_bytes);
    EXPECT_EQ(device_->gauge->linear_bytes, 0);
    EXPECT_EQ(test::promised_bytes(*device_), 0);
  }

  Process* process_ = nullptr;
  Device* device_ = nullptr;
  int64_t limit_ = 0;
  std::atomic<int64_t> most_{0};
  std::atomic<int> passed_{0}, granted_{0}, refused_{0};
};

TEST_F(QuotaThreadsTest, TruthNeverPassesTheLimitAndNothingIsLeft) {
  begin("2G");
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([this, t] { churn(static_cast<unsigned>(t), 150); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(passed_, 0) << "truth reached " << most_;
  EXPECT_GT(granted_, 500);
  EXPECT_GT(refused_, 10) << "the cap was never reached, so nothing was tested";
  EXPECT_GT(most_, limit_ * 3 / 4);
  expect_all_given_back();
}

// The driver's own share comes and goes as contexts do: promised, taken, measured, settled as nobody's charge.
TEST_F(QuotaThreadsTest, TruthNeverPassesTheLimitWhileContextsComeAndGo) {
  begin("3G");
  std::atomic<bool> done{false};
  std::atomic<int> contexts{0};
  std::thread owner([&] {
    constexpr uint64_t kContextBytes = 518 * kMiB;
    while (!done) {
      if (reserve(*process_, *device_, kContextBytes) != Verdict::kGranted) {
        sched_yield();
        continue;
      }
      begin_flight(*device_);
      card_takes(static_cast<int64_t>(kContextBytes));
      end_flight(*device_);
      look(*process_, *device_, true);
      settle(*device_, GPUCAP_KIND_CONTEXT, kContextBytes, 0);
      ++contexts;
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      begin_flight(*device_);
      card_gives(static_cast<int64_t>(kContextBytes));
      end_flight(*device_);
      look(*process_, *device_, true);
    }
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      auto seed = static_cast<unsigned>(t);
      do {  // as long as it takes for some contexts to come and go meanwhile
        churn(seed, 150);
        seed += kThreads;
      } while (contexts <= 3);
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  owner.join();
  EXPECT_EQ(passed_, 0) << "truth reached " << most_;
  EXPECT_GT(contexts, 3);
  EXPECT_GT(refused_, 10);
  expect_all_given_back();
}

// The books see a free late (stream-ordered), and a charge that shrinks by itself: refusals must not outlive it.
TEST_F(QuotaThreadsTest, RefusedThreadsGoOnAsSoonAsThereIsRoom) {
  begin("1G");
  ASSERT_TRUE(take(kGiB));
  std::atomic<int> through{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      while (!take(100 * kMiB)) sched_yield();
      ++through;
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(through, 0);
  give(kGiB);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(through, kThreads);
  EXPECT_EQ(passed_, 0);
}

TEST_F(QuotaThreadsTest, ManyThreadsThatStartAtOnceActivateADeviceOnce) {
  setenv("GPUCAP_LOG", "off", 1);
  Process::install(test::fake_parts());
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      ++ready;
      while (ready < 16) sched_yield();
      Process* process = Process::get();
      ASSERT_NE(process, nullptr);
      ASSERT_EQ(process->device_count(), 2);
      Device& device = *process->device(0);
      ASSERT_EQ(reserve(*process, device, kMiB), Verdict::kGranted);
      settle(device, GPUCAP_KIND_LINEAR, kMiB, kMiB);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(FakeCard::enumerated, 1);
  EXPECT_EQ(FakeCard::opened, 1);
  EXPECT_EQ(Process::get()->device(0)->gauge->linear_bytes, static_cast<int64_t>(16 * kMiB));
  EXPECT_EQ(Process::get()->device(1)->gauge->active, 0u) << "a device that was never used stays untouched";
}

}  // namespace
}  // namespace gpucap
