// The reading end of a segment's event ring: delivers events in order, and knows exactly how many it missed. Used by
// the tools; the writing end and the protocol's other half are in ring_writer.h. Never writes, never waits.
//
// Missed events are of three kinds: overwritten before they were read (the writer lapped us), dropped by the writer,
// and abandoned half-written by a writer that died. After a drain, delivered + lost = all events that were ever
// attempted.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "wire/layout.h"

namespace gpucap::wire {

// A Source gives the ring's words. Each function returns false when they can no longer be read.
//   bool counters(uint64_t* head, uint64_t* dropped)
//   bool sequences(uint64_t first_slot, uint32_t count, uint64_t* out)          every load an acquire
//   bool events(uint64_t first_slot, uint32_t count, gpucap_event* out)         likewise: later loads stay behind
// Slots never wrap within one call.

// The ring in memory.
class MappedRingSource {
 public:
  MappedRingSource(gpucap_ring_header* header, gpucap_event* events) : header_(header), events_(events) {}

  bool counters(uint64_t* head, uint64_t* dropped) const {
    *head = load(&header_->head);
    *dropped = load(&header_->dropped);
    return true;
  }
  bool sequences(uint64_t first_slot, uint32_t count, uint64_t* out) const {
    for (uint32_t i = 0; i < count; ++i) out[i] = load(&events_[first_slot + i].sequence);
    return true;
  }
  bool events(uint64_t first_slot, uint32_t count, gpucap_event* out) const {
    for (uint32_t i = 0; i < count; ++i) {
      uint64_t words[sizeof(gpucap_event) / sizeof(uint64_t)];
      auto* from = static_cast<uint64_t*>(static_cast<void*>(&events_[first_slot + i]));
      for (uint64_t& word : words) word = load(from++);
      std::memcpy(&out[i], words, sizeof(words));
    }
    return true;
  }

 private:
  // Acquire pairs with the writer's release fence and its final release store.
  static uint64_t load(uint64_t* word) { return std::atomic_ref<uint64_t>(*word).load(std::memory_order_acquire); }

  gpucap_ring_header* header_;
  gpucap_event* events_;
};

enum class RingStatus {
  kEvent,
  kCaughtUp,  // every event claimed so far has been delivered or counted as lost
  kNotYet,    // the next event is being written by a live writer: ask again later
  kFailed,    // the source can no longer be read
};

template <class Source>
class RingReader {
 public:
  // Starts at event number `position`: 0 for all that is still there, or a head read before for what comes after it.
  // `dropped_before` are drops that are not this reader's loss.
  RingReader(Source source, uint64_t capacity, uint64_t position = 0, uint64_t dropped_before = 0)
      : source_(source), capacity_(capacity), position_(position), dropped_before_(dropped_before) {}

  // With `writer_is_dead`, an unfinished event is lost instead of waited for. Learn of the death before the call: an
  // event finished between the two would be lost otherwise.
  RingStatus next(bool writer_is_dead, gpucap_event* out) {
    for (;;) {
      if (used_ == filled_) {
        const RingStatus status = refill();
        if (status != RingStatus::kEvent) return status;
      }
      while (used_ < filled_) {
        const uint32_t i = used_;
        switch (judge(before_[i], after_[i])) {
          case Verdict::kComplete:
            *out = batch_[i];
            advance();
            return RingStatus::kEvent;
          case Verdict::kUnfinished:
            if (!writer_is_dead) {
              used_ = filled_ = 0;  // read again at the next call
              return RingStatus::kNotYet;
            }
            ++passed_over_;
            advance();
            break;
          case Verdict::kOverwritten:
            ++passed_over_;
            advance();
            break;
        }
      }
    }
  }

  // Number of the next event to be delivered.
  [[nodiscard]] uint64_t position() const { return position_; }
  // As of the latest next() that did not come from the batch; exact once that returned kCaughtUp.
  [[nodiscard]] uint64_t lost() const { return passed_over_ + dropped_; }

 private:
  static constexpr uint32_t kBatch = 64;
  static constexpr uint64_t kNumberMask = ~(uint64_t{1} << 63);
  enum class Verdict { kComplete, kUnfinished, kOverwritten };

  [[nodiscard]] Verdict judge(uint64_t before, uint64_t after) const {
    const uint64_t complete = position_ + 1;
    if (before == complete) return after == complete ? Verdict::kComplete : Verdict::kOverwritten;
    // Claimed, and either marked as being written or not even that yet.
    return (before & kNumberMask) <= complete ? Verdict::kUnfinished : Verdict::kOverwritten;
  }

  void advance() {
    ++position_;
    ++used_;
  }

  RingStatus refill() {
    used_ = filled_ = 0;
    uint64_t head = 0;
    uint64_t dropped = 0;
    if (!source_.counters(&head, &dropped)) return RingStatus::kFailed;
    dropped_ = dropped >= dropped_before_ ? dropped - dropped_before_ : 0;
    if (head <= position_) return RingStatus::kCaughtUp;
    if (head - position_ > capacity_) {
      passed_over_ += head - capacity_ - position_;
      position_ = head - capacity_;
    }
    const uint64_t slot = position_ & (capacity_ - 1);
    const auto count = static_cast<uint32_t>(std::min<uint64_t>({head - position_, capacity_ - slot, kBatch}));
    // The protocol of a sequence lock, a batch at a time: sequences, contents, sequences.
    if (!source_.sequences(slot, count, before_.data()) || !source_.events(slot, count, batch_.data()) ||
        !source_.sequences(slot, count, after_.data())) {
      return RingStatus::kFailed;
    }
    filled_ = count;
    return RingStatus::kEvent;
  }

  Source source_;
  uint64_t capacity_;
  uint64_t position_;
  uint64_t dropped_before_;
  uint64_t passed_over_ = 0;  // overwritten or abandoned
  uint64_t dropped_ = 0;
  uint32_t filled_ = 0;
  uint32_t used_ = 0;
  std::array<uint64_t, kBatch> before_ = {};
  std::array<uint64_t, kBatch> after_ = {};
  std::array<gpucap_event, kBatch> batch_ = {};
};

}  // namespace gpucap::wire
