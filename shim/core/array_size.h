// How much an array takes, between two bounds. Arrays lie in blocks of 64-byte by 8-row tiles; the driver picks the
// block's height and depth itself and does not say, so the true size lies between the bytes asked for and the padded
// bytes. The figure that counts is measured after the call.
#pragma once

#include <cstdint>

#include "shim/core/size.h"

namespace gpucap::core {

struct ArrayShape {
  uint64_t width = 0, height = 0, depth = 0;  // elements; 0 stands for an absent dimension
  uint64_t element_bytes = 1;
  uint32_t levels = 1;
  bool layered = false;  // depth counts layers, which are not padded and do not shrink from level to level
};

namespace array_detail {
constexpr uint64_t at_least_one(uint64_t n) { return n == 0 ? 1 : n; }
constexpr uint64_t tile_multiple(uint64_t n, uint64_t tile, uint64_t most) {
  uint64_t block = tile;
  while (block < n && block < most) block *= 2;
  return round_up(n, block);
}
constexpr uint64_t multiply(uint64_t a, uint64_t b) { return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b; }
template <typename Pad>
constexpr uint64_t sum_levels(const ArrayShape& shape, Pad pad) {
  uint64_t total = 0;
  uint64_t w = at_least_one(shape.width), h = at_least_one(shape.height), d = at_least_one(shape.depth);
  for (uint32_t level = 0; level < shape.levels && level < 32; ++level) {
    const uint64_t bytes = pad(w, h, d);
    if (bytes > UINT64_MAX - total) return UINT64_MAX;
    total += bytes;
    w = at_least_one(w / 2);
    h = at_least_one(h / 2);
    if (!shape.layered) d = at_least_one(d / 2);
  }
  return total;
}
}  // namespace array_detail

constexpr uint64_t array_bytes_at_least(const ArrayShape& shape) {
  return array_detail::sum_levels(shape, [&](uint64_t w, uint64_t h, uint64_t d) {
    return array_detail::multiply(array_detail::multiply(w, shape.element_bytes), array_detail::multiply(h, d));
  });
}

constexpr uint64_t array_bytes_at_most(const ArrayShape& shape) {
  const uint64_t bytes = array_detail::sum_levels(shape, [&](uint64_t w, uint64_t h, uint64_t d) {
    const uint64_t row = round_up(array_detail::multiply(w, shape.element_bytes), 128);
    const uint64_t rows = array_detail::tile_multiple(h, 8, 128);
    const uint64_t slices = shape.layered || d == 1 ? d : array_detail::tile_multiple(d, 1, 32);
    return array_detail::multiply(array_detail::multiply(row, rows), slices);
  });
  return round_up(bytes, 2 * kMiB);
}

}  // namespace gpucap::core
