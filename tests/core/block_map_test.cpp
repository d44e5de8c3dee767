#include "shim/core/block_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "tests/core/test_pages.h"

namespace gpucap::core {
namespace {

constexpr uint64_t kBase = 0x7f4000000000;
constexpr uint64_t kBlock = BlockMap::kBlockBytes;

TEST(BlockMap, FirstInABlockOpensItAndLastOutClosesIt) {
  BlockMap map;
  const PageSource pages = test_pages();
  EXPECT_TRUE(map.add(kBase, 512, pages));
  EXPECT_FALSE(map.add(kBase + 512, 100, pages));
  EXPECT_TRUE(map.add(kBase + kBlock, 512, pages));
  EXPECT_FALSE(map.remove(kBase, 512));
  EXPECT_TRUE(map.remove(kBase + 512, 100));
  EXPECT_TRUE(map.remove(kBase + kBlock, 512));
  EXPECT_EQ(map.blocks(), 0u);
}

TEST(BlockMap, FindsAGapOnlyWhereOneIsLongEnough) {
  BlockMap map;
  const PageSource pages = test_pages();
  EXPECT_FALSE(map.has_gap(1)) << "no block, no gap";
  map.add(kBase, 1 << 20, pages);
  EXPECT_TRUE(map.has_gap(1 << 20));
  map.add(kBase + (1 << 20), (1 << 20) - 512, pages);
  EXPECT_TRUE(map.has_gap(512));
  EXPECT_FALSE(map.has_gap(513));
  map.remove(kBase, 1 << 20);
  map.add(kBase + (1 << 19), 512, pages);  // the free half is cut in two
  EXPECT_TRUE(map.has_gap(1 << 19));
  EXPECT_FALSE(map.has_gap(1 << 20));
}

TEST(BlockMap, AllocationThatRunsToTheBlocksEndStaysInside) {
  BlockMap map;
  const PageSource pages = test_pages();
  EXPECT_TRUE(map.add(kBase + kBlock - 512, 4096, pages));
  EXPECT_TRUE(map.remove(kBase + kBlock - 512, 4096));
}

TEST(BlockMap, CountsLikeAPlainModelOverRandomSteps) {
  BlockMap map;
  const PageSource pages = test_pages();
  std::mt19937_64 random(3);
  struct Live {
    uint64_t address, bytes;
  };
  std::vector<Live> live;
  std::map<uint64_t, int> blocks;
  uint64_t next = 0;
  int held = 0;
  for (int i = 0; i < 100000; ++i) {
    if (live.empty() || random() % 2 == 0) {
      const uint64_t bytes = 1 + random() % 60000;
      if (next % kBlock + bytes > kBlock) next = (next / kBlock + 1) * kBlock;
      const Live entry{kBase + next, bytes};
      next += (bytes + 511) / 512 * 512;
      if (map.add(entry.address, entry.bytes, pages)) ++held;
      ++blocks[entry.address / kBlock];
      live.push_back(entry);
    } else {
      const size_t which = random() % live.size();
      if (map.remove(live[which].address, live[which].bytes)) --held;
      if (--blocks[live[which].address / kBlock] == 0) blocks.erase(live[which].address / kBlock);
      live[which] = live.back();
      live.pop_back();
    }
    ASSERT_EQ(static_cast<size_t>(held), blocks.size());
  }
  EXPECT_EQ(map.blocks(), blocks.size());
}

TEST(BlockMap, WithoutMemoryItErrsOnTheSafeSideBothWays) {
  BlockMap map;
  pages_limit = pages_out;
  EXPECT_TRUE(map.add(kBase, 512, test_pages())) << "charged";
  EXPECT_TRUE(map.remove(kBase, 512)) << "and uncharged";
  pages_limit = SIZE_MAX;
}

}  // namespace
}  // namespace gpucap::core
