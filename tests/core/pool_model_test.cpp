#include "shim/core/pool_model.h"

#include <gtest/gtest.h>

namespace gpucap::core {
namespace {

constexpr uint64_t kBase = 0x302000000;

// The driver's answers as measured: contiguous, in steps of 32 MiB.
TEST(PoolModel, PromisesFromAboveAndNothingWhereItMustFit) {
  PoolModel pool;
  EXPECT_EQ(pool.expect(1), PoolModel::kStep);
  EXPECT_TRUE(pool.placed(kBase, 1));
  EXPECT_EQ(pool.refresh(32 * kMiB), static_cast<int64_t>(32 * kMiB));
  EXPECT_EQ(pool.expect(20 * kMiB), 0u) << "fits behind the first";
  EXPECT_FALSE(pool.placed(kBase + 512, 20 * kMiB)) << "cannot have grown: no need to ask the driver";
  EXPECT_EQ(pool.expect(20 * kMiB), PoolModel::kStep);
  EXPECT_TRUE(pool.placed(kBase + 512 + 20 * kMiB, 20 * kMiB));
  EXPECT_EQ(pool.refresh(64 * kMiB), static_cast<int64_t>(32 * kMiB));
  EXPECT_EQ(pool.expect(100 * kMiB), 128 * kMiB);
}

TEST(PoolModel, TwoRequestsAtOnceAreNotPromisedTheSameTail) {
  PoolModel pool;
  pool.expect(1);
  static_cast<void>(pool.placed(kBase, 1));
  pool.refresh(32 * kMiB);
  EXPECT_EQ(pool.expect(20 * kMiB), 0u);
  EXPECT_EQ(pool.expect(20 * kMiB), PoolModel::kStep) << "the first has claimed the room";
  pool.failed(20 * kMiB);
  pool.failed(20 * kMiB);
  EXPECT_EQ(pool.expect(20 * kMiB), 0u);
}

TEST(PoolModel, ReusedGapDoesNotMoveTheEnd) {
  PoolModel pool;
  pool.expect(10 * kMiB);
  static_cast<void>(pool.placed(kBase, 10 * kMiB));
  pool.refresh(32 * kMiB);
  pool.freed();
  EXPECT_TRUE(pool.take_shrinkable());
  EXPECT_FALSE(pool.take_shrinkable());
  pool.expect(10 * kMiB);
  EXPECT_FALSE(pool.placed(kBase, 10 * kMiB));
  EXPECT_EQ(pool.expect(20 * kMiB), 0u);
}

TEST(PoolModel, EmptyPoolStartsAnew) {
  PoolModel pool;
  pool.expect(30 * kMiB);
  static_cast<void>(pool.placed(kBase, 30 * kMiB));
  pool.refresh(32 * kMiB);
  pool.freed();
  EXPECT_EQ(pool.refresh(0), -static_cast<int64_t>(32 * kMiB));
  pool.expect(1);
  EXPECT_TRUE(pool.placed(kBase + (uint64_t{1} << 40), 1)) << "wherever the range lies now";
  EXPECT_EQ(pool.refresh(32 * kMiB), static_cast<int64_t>(32 * kMiB));
  EXPECT_EQ(pool.expect(31 * kMiB), 0u);
}

TEST(PoolModel, BlockOutsideTheKnownRangeEndsAllPromises) {
  PoolModel pool;
  pool.expect(1);
  static_cast<void>(pool.placed(kBase, 1));
  pool.refresh(64 * kMiB);
  pool.expect(1);
  EXPECT_TRUE(pool.placed(kBase - kGiB, 1));
  EXPECT_EQ(pool.expect(1), PoolModel::kStep);
}

TEST(PoolModel, ShrinkUnderLiveBlocksLeavesHolesAndEndsPromises) {
  PoolModel pool;
  pool.expect(60 * kMiB);
  static_cast<void>(pool.placed(kBase, 60 * kMiB));
  pool.expect(1 * kMiB);
  static_cast<void>(pool.placed(kBase + 60 * kMiB, 1 * kMiB));
  pool.refresh(64 * kMiB);
  pool.freed();  // the first
  EXPECT_EQ(pool.refresh(32 * kMiB), -static_cast<int64_t>(32 * kMiB));
  EXPECT_EQ(pool.expect(1), PoolModel::kStep) << "may go into the hole, which must be taken again";
}

TEST(PoolModel, RoomThatSomebodyReliesOnStaysCharged) {
  PoolModel pool;
  pool.expect(1);
  static_cast<void>(pool.placed(kBase, 1));
  pool.refresh(64 * kMiB);
  EXPECT_EQ(pool.expect(40 * kMiB), 0u);
  pool.rely_on_room();
  EXPECT_EQ(pool.refresh(32 * kMiB), 0) << "shrunk by another thread, and about to grow again";
  static_cast<void>(pool.placed(kBase + 512, 40 * kMiB));
  pool.rely_no_more();
  EXPECT_EQ(pool.refresh(64 * kMiB), 0);
}

TEST(PoolModel, LearnedEndFreesTheTail) {
  PoolModel pool;
  pool.expect(1 * kMiB);
  static_cast<void>(pool.placed(kBase, 1 * kMiB));
  pool.expect(30 * kMiB);
  static_cast<void>(pool.placed(kBase + kMiB, 30 * kMiB));
  pool.refresh(32 * kMiB);
  pool.freed();  // the second
  EXPECT_EQ(pool.expect(20 * kMiB), PoolModel::kStep) << "only the highest end is known";
  pool.failed(20 * kMiB);
  pool.set_highest_end(kBase + kMiB);
  EXPECT_EQ(pool.expect(20 * kMiB), 0u);
}

}  // namespace
}  // namespace gpucap::core
