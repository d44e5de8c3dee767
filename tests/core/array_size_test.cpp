#include "shim/core/array_size.h"

#include <gtest/gtest.h>

namespace gpucap::core {
namespace {

struct Measured {
  const char* what;
  ArrayShape shape;
  uint64_t took_mib;  // on an H200, driver 580.159 (docs/measurements.md)
};

class ArrayBounds : public testing::TestWithParam<Measured> {};
TEST_P(ArrayBounds, HoldWhatTheDriverTook) {
  const uint64_t took = GetParam().took_mib * kMiB;
  EXPECT_LE(array_bytes_at_least(GetParam().shape), took) << GetParam().what;
  EXPECT_GE(array_bytes_at_most(GetParam().shape), took) << GetParam().what;
}
INSTANTIATE_TEST_SUITE_P(
    Arrays, ArrayBounds,
    testing::Values(
        Measured{"1D", {1000, 0, 0, 4, 1, false}, 2}, Measured{"1D long", {100000, 0, 0, 16, 1, false}, 14},
        Measured{"2D", {1000, 1000, 0, 4, 1, false}, 4}, Measured{"2D odd", {1025, 1025, 0, 16, 1, false}, 20},
        Measured{"2D wide", {30000, 10, 0, 4, 1, false}, 2}, Measured{"2D tall", {10, 30000, 0, 4, 1, false}, 2},
        Measured{"2D one column", {1, 60000, 0, 16, 1, false}, 4},
        Measured{"2D bytes", {3000, 3000, 0, 1, 1, false}, 10}, Measured{"2D half4", {513, 2049, 0, 8, 1, false}, 10},
        Measured{"3D", {100, 100, 100, 4, 1, false}, 6}, Measured{"3D odd", {129, 129, 129, 16, 1, false}, 40},
        Measured{"3D thin", {1000, 10, 1000, 4, 1, false}, 64}, Measured{"3D deep", {10, 10, 4000, 4, 1, false}, 4},
        Measured{"layered", {100, 100, 100, 4, 1, true}, 6}, Measured{"1D layered", {1000, 0, 500, 4, 1, true}, 16},
        Measured{"cube", {256, 256, 6, 16, 1, true}, 6}, Measured{"mip", {1024, 1024, 0, 4, 11, false}, 6},
        Measured{"mip odd", {1000, 1000, 0, 16, 10, false}, 22}, Measured{"mip 3D", {128, 128, 128, 4, 8, false}, 10},
        Measured{"mip layered", {256, 256, 20, 4, 9, true}, 8}, Measured{"mip two", {1025, 1025, 0, 16, 2, false}, 24},
        Measured{"mip 3D odd", {129, 129, 129, 4, 8, false}, 12}));

TEST(ArrayBounds, AbsurdShapesSaturate) {
  const ArrayShape shape{UINT64_MAX, UINT64_MAX, UINT64_MAX, 16, 32, false};
  EXPECT_GT(array_bytes_at_least(shape), uint64_t{1} << 62);
  EXPECT_GT(array_bytes_at_most(shape), uint64_t{1} << 62);
}

}  // namespace
}  // namespace gpucap::core
