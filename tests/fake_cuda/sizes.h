// What things take on the card that this fake imitates, measured on one H200 with driver 580. Pure arithmetic; used by
// every part of the fake. All values are bytes.
#pragma once

#include <cstdint>

namespace fake {

inline constexpr uint64_t kKiB = 1024;
inline constexpr uint64_t kMiB = 1024 * kKiB;
inline constexpr uint64_t kGiB = 1024 * kMiB;
inline constexpr uint64_t kGranuleBytes = 512;
inline constexpr uint64_t kBlockBytes = 2 * kMiB;
inline constexpr uint64_t kSmallBytes = 1 * kMiB;  // the largest request that shares a block
inline constexpr uint64_t kPoolChunkBytes = 32 * kMiB;
inline constexpr uint64_t kContextBytes = 543162368;
inline constexpr uint64_t kStreamBytes = 576 * kKiB;
inline constexpr uint64_t kThreadsOnDevice = 2048 * 132;  // of 132 multiprocessors, resident at once
inline constexpr uint64_t kDefaultStackBytes = 1024;

inline constexpr int kMostDevices = 8;
inline constexpr int kMultiprocessors = 132;

// Above this nothing is a plausible size: refuse before any sum can overflow.
inline constexpr uint64_t kAbsurdBytes = uint64_t{1} << 50;

constexpr uint64_t round_up(uint64_t bytes, uint64_t step) { return (bytes + step - 1) / step * step; }

// a * b, or kAbsurdBytes when that would not fit a plausible size.
constexpr uint64_t saturating_product(uint64_t a, uint64_t b) {
  if (a == 0 || b == 0) return 0;
  return a >= kAbsurdBytes / b ? kAbsurdBytes : a * b;
}

// What a linear allocation, an array or a module of this many bytes adds when it gets memory of its own.
constexpr uint64_t whole_blocks(uint64_t bytes) {
  return bytes >= kAbsurdBytes ? kAbsurdBytes : round_up(bytes, kBlockBytes);
}

}  // namespace fake
