// The arithmetic of one device's quota: what is committed, what is promised to calls that are in the driver right now,
// and what the driver holds by itself. Lock-free, called from every thread. Knows nothing of CUDA, time or other
// processes.
//
// The order of the two words makes a grant safe: a charge is added to `committed_` before its promise leaves
// `reserved_`, and whoever checks reads `reserved_` before `committed_`. So a check can see a charge twice, never not
// at all.
#pragma once

#include <atomic>
#include <cstdint>

#include "shim/core/size.h"

namespace gpucap::core {

class Ledger {
 public:
  void set_limit(uint64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  [[nodiscard]] uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool limited() const { return limit() != kNoLimit; }

  // Promise `bytes` if they fit below the limit. Every true must be followed by settle() with the same bytes.
  // Two racing requests may both be turned away where one would fit: the caller tries again alone before it refuses.
  [[nodiscard]] bool try_reserve(uint64_t bytes) { return try_reserve_below(bytes, limit()); }
  // The same below a limit of the caller's.
  [[nodiscard]] bool try_reserve_below(uint64_t bytes, uint64_t cap) {
    if (cap == kNoLimit) {
      reserved_.fetch_add(clamp(bytes));
      return true;
    }
    const int64_t most = clamp(cap);
    if (bytes > static_cast<uint64_t>(most)) return false;
    const auto wanted = static_cast<int64_t>(bytes);
    const int64_t promised = reserved_.fetch_add(wanted) + wanted;
    if (promised + committed_.load() + driver_.load() <= most) return true;
    reserved_.fetch_sub(wanted);
    return false;
  }

  // Whether all that is held and promised is within a limit.
  [[nodiscard]] bool within(uint64_t cap) const {
    return cap == kNoLimit || reserved_.load() + committed_.load() + driver_.load() <= clamp(cap);
  }

  // The call is over: `taken` bytes became real (0 if it failed), and the promise ends.
  void settle(uint64_t promised, uint64_t taken) {
    if (taken != 0) committed_.fetch_add(clamp(taken));
    if (promised != 0) reserved_.fetch_sub(clamp(promised));
  }
  void charge(int64_t delta) { committed_.fetch_add(delta); }

  // Memory that the driver took by itself; measured, so it replaces the earlier figure. May be below zero for a moment,
  // where the driver has already given back what is still charged.
  void set_driver(int64_t bytes) { driver_.store(bytes); }
  int64_t exchange_driver(int64_t bytes) { return driver_.exchange(bytes); }

  [[nodiscard]] int64_t committed() const { return committed_.load(); }
  [[nodiscard]] int64_t reserved() const { return reserved_.load(std::memory_order_relaxed); }
  [[nodiscard]] int64_t driver() const { return driver_.load(std::memory_order_relaxed); }
  [[nodiscard]] int64_t used() const {
    const int64_t bytes = committed_.load(std::memory_order_relaxed) + driver();
    return bytes < 0 ? 0 : bytes;
  }

  // What a new request may still take: 0 when over the limit.
  [[nodiscard]] uint64_t headroom() const {
    if (!limited()) return kNoLimit;
    const int64_t left = clamp(limit()) - used() - reserved();
    return left < 0 ? 0 : static_cast<uint64_t>(left);
  }

 private:
  static int64_t clamp(uint64_t bytes) {
    return bytes > static_cast<uint64_t>(INT64_MAX / 4) ? INT64_MAX / 4 : static_cast<int64_t>(bytes);
  }

  std::atomic<uint64_t> limit_{kNoLimit};
  std::atomic<int64_t> committed_{0};
  std::atomic<int64_t> driver_{0};
  std::atomic<int64_t> reserved_{0};
};

}  // namespace gpucap::core
