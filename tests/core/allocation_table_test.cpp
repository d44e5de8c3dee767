#include "shim/core/allocation_table.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tests/core/test_pages.h"

namespace gpucap::core {
namespace {

Record record(uint64_t key, uint64_t bytes, Space space = Space::kPointer) {
  Record r;
  r.space = space;
  r.key = key;
  r.bytes = bytes;
  return r;
}

struct AllocationTableTest : testing::Test {
  AllocationTable table{test_pages()};
};

TEST_F(AllocationTableTest, GivesBackWhatWasPutIn) {
  ASSERT_TRUE(table.insert(record(0x7f0000000000, 123)));
  Record out;
  ASSERT_TRUE(table.find(Space::kPointer, 0x7f0000000000, &out));
  EXPECT_EQ(out.bytes, 123u);
  ASSERT_TRUE(table.take(Space::kPointer, 0x7f0000000000, &out));
  EXPECT_FALSE(table.take(Space::kPointer, 0x7f0000000000, &out)) << "freed twice";
  EXPECT_EQ(table.size(), 0u);
}

TEST_F(AllocationTableTest, KnowsNothingOfStrangers) {
  Record out;
  EXPECT_FALSE(table.take(Space::kPointer, 42, &out));
  ASSERT_TRUE(table.insert(record(1, 1)));
  EXPECT_FALSE(table.find(Space::kPointer, 42, &out));
}

TEST_F(AllocationTableTest, SameNumberInTwoSpacesIsTwoThings) {
  ASSERT_TRUE(table.insert(record(7, 1, Space::kPointer)));
  ASSERT_TRUE(table.insert(record(7, 2, Space::kVmmHandle)));
  Record out;
  ASSERT_TRUE(table.take(Space::kVmmHandle, 7, &out));
  EXPECT_EQ(out.bytes, 2u);
  ASSERT_TRUE(table.take(Space::kPointer, 7, &out));
  EXPECT_EQ(out.bytes, 1u);
}

TEST_F(AllocationTableTest, HandsOutWhatItReplaces) {
  ASSERT_TRUE(table.insert(record(7, 1)));
  Record replaced;
  ASSERT_TRUE(table.insert(record(7, 2), &replaced));
  EXPECT_EQ(replaced.bytes, 1u);
  EXPECT_EQ(table.size(), 1u);
}

TEST_F(AllocationTableTest, AgreesWithAMapOverManyRandomSteps) {
  std::mt19937_64 random(1);
  std::unordered_map<uint64_t, uint64_t> model;
  for (int i = 0; i < 300000; ++i) {
    const uint64_t key = (random() % 5000) << 9 | 0x7f0000000000;
    if (random() % 2 == 0) {
      ASSERT_TRUE(table.insert(record(key, static_cast<uint64_t>(i))));
      model[key] = static_cast<uint64_t>(i);
    } else {
      Record out;
      const bool taken = table.take(Space::kPointer, key, &out);
      ASSERT_EQ(taken, model.count(key) == 1);
      if (taken) {
        ASSERT_EQ(out.bytes, model[key]);
      }
      model.erase(key);
    }
  }
  EXPECT_EQ(table.size(), model.size());
}

TEST_F(AllocationTableTest, TakesAtMost64BytesARecord) {
  for (uint64_t i = 0; i < 200000; ++i) ASSERT_TRUE(table.insert(record(0x7f0000000000 + i * 512, 1)));
  EXPECT_LE(table.bytes_of_memory(), 200000u * 64);
}

TEST_F(AllocationTableTest, TakeIfTakesExactlyTheMatching) {
  for (uint64_t i = 0; i < 10000; ++i) {
    Record r = record(i * 512 + 512, i);
    r.context = i % 3 == 0 ? 1 : 2;
    ASSERT_TRUE(table.insert(r));
  }
  uint64_t sum = 0;
  table.take_if([](const Record& r, void*) { return r.context == 1; },
                [](const Record& r, void* total) { *static_cast<uint64_t*>(total) += r.bytes; }, &sum);
  EXPECT_EQ(table.size(), 10000u - 3334u);
  EXPECT_EQ(sum, 16668333u);  // 0 + 3 + ... + 9999
}

TEST_F(AllocationTableTest, UpdateCanEndARecord) {
  ASSERT_TRUE(table.insert(record(9, 2)));
  const auto one_less = [](Record& r, void*) { return --r.bytes == 0; };
  Record after;
  ASSERT_TRUE(table.update(Space::kPointer, 9, one_less, nullptr, &after));
  EXPECT_EQ(after.bytes, 1u);
  ASSERT_TRUE(table.update(Space::kPointer, 9, one_less, nullptr, &after));
  EXPECT_FALSE(table.update(Space::kPointer, 9, one_less, nullptr, &after));
}

TEST_F(AllocationTableTest, WithoutMemoryItSaysSoAndKeepsWhatItHas) {
  pages_limit = pages_out + 16 * 4096;
  uint64_t in = 0;
  for (uint64_t i = 1; i <= 100000; ++i) in += table.insert(record(i * 512, 1)) ? 1 : 0;
  pages_limit = SIZE_MAX;
  EXPECT_LT(in, 100000u);
  EXPECT_EQ(table.size(), in);
  Record out;
  uint64_t found = 0;
  for (uint64_t i = 1; i <= 100000; ++i) found += table.take(Space::kPointer, i * 512, &out) ? 1 : 0;
  EXPECT_EQ(found, in);
}

TEST_F(AllocationTableTest, ThreadsDoNotLoseEachOthersRecords) {
  std::vector<std::thread> threads;
  std::atomic<int> lost{0};
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        for (uint64_t i = 0; i < 500; ++i)
          if (!table.insert(record((t << 40) + i * 512 + 512, t))) lost.fetch_add(1);
        for (uint64_t i = 0; i < 500; ++i) {
          Record out;
          if (!table.take(Space::kPointer, (t << 40) + i * 512 + 512, &out) || out.bytes != t) lost.fetch_add(1);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lost.load(), 0);
  EXPECT_EQ(table.size(), 0u);
}

}  // namespace
}  // namespace gpucap::core
