#include "shim/core/backed_ranges.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "shim/core/size.h"

namespace gpucap::core {
namespace {

constexpr uint64_t kBase = 0x302000000;
constexpr uint64_t kPage = BackedRanges::kPage_bytes;

TEST(BackedRanges, KnowsNothingAtFirst) {
  const BackedRanges ranges;
  EXPECT_FALSE(ranges.holds(kBase, 1, 0));
}

TEST(BackedRanges, KnowsTheWholePagesOfABlockAndNothingBesideThem) {
  BackedRanges ranges;
  ranges.add(kBase + 512, kPage, 2);
  EXPECT_TRUE(ranges.holds(kBase, 2 * kPage, 2));
  EXPECT_FALSE(ranges.holds(kBase, 2 * kPage + 1, 2));
  EXPECT_FALSE(ranges.holds(kBase - 1, 2, 2));
}

TEST(BackedRanges, WhatIsKnownEndsWithItsEpoch) {
  BackedRanges ranges;
  ranges.add(kBase, 512, 2);
  EXPECT_FALSE(ranges.holds(kBase, 512, 4));
  ranges.add(kBase + 8 * kPage, 512, 4);
  EXPECT_FALSE(ranges.holds(kBase, 512, 4)) << "known in the epoch before";
  EXPECT_FALSE(ranges.holds(kBase, 512, 2));
  EXPECT_TRUE(ranges.holds(kBase + 8 * kPage, 512, 4));
}

TEST(BackedRanges, NeighboursBecomeOneAndGapsStay) {
  BackedRanges ranges;
  ranges.add(kBase, kPage, 2);
  ranges.add(kBase + 2 * kPage, kPage, 2);
  EXPECT_FALSE(ranges.holds(kBase, 3 * kPage, 2));
  ranges.add(kBase + kPage, kPage, 2);
  EXPECT_TRUE(ranges.holds(kBase, 3 * kPage, 2));
}

TEST(BackedRanges, TooManyPiecesForgetTheSmallestOnly) {
  BackedRanges ranges;
  ranges.add(kBase, 4 * kPage, 2);
  for (uint64_t i = 0; i < 3 * BackedRanges::kMost; ++i) ranges.add(kBase + (100 + 2 * i) * kPage, kPage, 2);
  EXPECT_TRUE(ranges.holds(kBase, 4 * kPage, 2));
  EXPECT_TRUE(ranges.holds(kBase + (100 + 2 * (3 * BackedRanges::kMost - 1)) * kPage, kPage, 2)) << "the latest";
}

TEST(BackedRanges, ForgetsAllAtOnce) {
  BackedRanges ranges;
  ranges.add(kBase, kPage, 2);
  ranges.forget();
  EXPECT_FALSE(ranges.holds(kBase, 1, 2));
}

TEST(BackedRanges, WhatIsCarriedOverIsKnownInTheLaterEpochAlone) {
  BackedRanges ranges;
  ranges.add(kBase, kPage, 2);
  ranges.carry_over(2, 4);
  EXPECT_TRUE(ranges.holds(kBase, kPage, 4));
  EXPECT_FALSE(ranges.holds(kBase, kPage, 2));
  ranges.carry_over(3, 5);
  EXPECT_FALSE(ranges.holds(kBase, kPage, 5)) << "of another epoch than what is known";
}

// One thread changes what is known between two distant pieces; the gap between them is never held to be backed.
TEST(BackedRanges, AReaderNeverSeesTwoPiecesAsOne) {
  BackedRanges ranges;
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    while (!over.load(std::memory_order_relaxed)) {
      if (ranges.holds(kBase + 50 * kPage, kPage, 2)) wrong.fetch_add(1);
    }
  });
  for (int i = 0; i < 200000; ++i) {
    ranges.add(i % 2 == 0 ? kBase : kBase + 100 * kPage, kPage, 2);
    if (i % 3 == 0) ranges.forget();
  }
  over.store(true);
  reader.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace gpucap::core
