#include "shim/core/pool_model.h"

#include <gtest/gtest.h>

namespace gpucap::core {
namespace {

// As measured: whole steps of 32 MiB, never more than the request rounded up to them.
TEST(PoolModel, GrowsByTheRequestRoundedUpToStepsAtMost) {
  EXPECT_EQ(PoolModel::most_growth(1), 32 * kMiB);
  EXPECT_EQ(PoolModel::most_growth(32 * kMiB), 32 * kMiB);
  EXPECT_EQ(PoolModel::most_growth(40 * kMiB), 64 * kMiB);
  EXPECT_EQ(PoolModel::most_growth(100 * kMiB), 128 * kMiB);
}

TEST(PoolModel, ChargeFollowsWhatTheDriverSays) {
  PoolModel pool;
  EXPECT_EQ(pool.refresh(64 * kMiB), static_cast<int64_t>(64 * kMiB));
  EXPECT_EQ(pool.refresh(64 * kMiB), 0);
  EXPECT_EQ(pool.refresh(32 * kMiB), -static_cast<int64_t>(32 * kMiB));
  EXPECT_EQ(pool.reserved(), 32 * kMiB);
}

TEST(PoolModel, TheLastBlockThatOutlivesItIsToldOnce) {
  PoolModel pool;
  pool.outlived_by(2);
  EXPECT_FALSE(pool.free_outliving());
  EXPECT_TRUE(pool.free_outliving());
  EXPECT_FALSE(pool.free_outliving()) << "never below nothing";
}

}  // namespace
}  // namespace gpucap::core
