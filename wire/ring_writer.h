// The writing end of a segment's event ring. Any thread of the owning process may publish; nobody ever waits: a slot
// that another thread is still filling a whole lap later costs the new event, which is counted in `dropped`. Readers
// live in ring_reader.h. Zeroed memory is a valid empty ring. Never allocates, never makes a system call.
#pragma once

#include <atomic>
#include <cstdint>

#include "wire/layout.h"

namespace gpucap::wire {

inline constexpr uint64_t kEventBeingWritten = uint64_t{1} << 63;

class RingWriter {
 public:
  RingWriter() = default;
  // Both pointers must outlive the writer; header->capacity must be a power of two and count the events.
  RingWriter(gpucap_ring_header* header, gpucap_event* events) : header_(header), events_(events) {}

  [[nodiscard]] bool attached() const { return header_ != nullptr; }

  // `event.sequence` is ignored. Returns false if the event was dropped.
  bool publish(const gpucap_event& event) {
    if (header_ == nullptr) return false;
    const uint64_t capacity = header_->capacity;
    std::atomic_ref<uint64_t> head(header_->head);
    uint64_t ticket = head.load(std::memory_order_relaxed);
    gpucap_event* slot = nullptr;
    do {
      slot = &events_[ticket & (capacity - 1)];
      const uint64_t complete_last_lap = ticket < capacity ? 0 : ticket - capacity + 1;
      // Acquire: pairs with the release below of the writer that filled this slot a lap ago.
      if (std::atomic_ref<uint64_t>(slot->sequence).load(std::memory_order_acquire) != complete_last_lap &&
          head.load(std::memory_order_relaxed) == ticket) {
        std::atomic_ref<uint64_t>(header_->dropped).fetch_add(1, std::memory_order_relaxed);
        return false;
      }
    } while (!head.compare_exchange_weak(ticket, ticket + 1, std::memory_order_relaxed));
    // The ticket is ours, and nobody can claim this slot again until our final store.
    std::atomic_ref<uint64_t> sequence(slot->sequence);
    sequence.store((ticket + 1) | kEventBeingWritten, std::memory_order_relaxed);
    std::atomic_thread_fence(
        std::memory_order_release);  // the mark above is seen before any byte below; pairs with the
                                     // reader's acquire fence between its copy and its second look
    store_payload(*slot, event);
    sequence.store(ticket + 1, std::memory_order_release);  // pairs with the reader's first load
    return true;
  }

 private:
  static constexpr int kWords = sizeof(gpucap_event) / sizeof(uint64_t);

  // Word by word with atomics, so that a reader who copies at the same moment is a race that the language allows.
  static void store_payload(gpucap_event& slot, const gpucap_event& event) {
    auto* to = reinterpret_cast<uint64_t*>(&slot);
    uint64_t from[kWords];
    __builtin_memcpy(from, &event, sizeof(event));
    for (int i = 1; i < kWords; ++i) std::atomic_ref<uint64_t>(to[i]).store(from[i], std::memory_order_relaxed);
  }

  gpucap_ring_header* header_ = nullptr;
  gpucap_event* events_ = nullptr;
};

}  // namespace gpucap::wire
