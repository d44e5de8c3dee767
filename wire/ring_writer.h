// The writing end of a segment's event ring. Any thread of the owning process may publish; nobody ever waits: a slot
// that another thread is still filling a whole lap later costs the new event, which is counted in `dropped`. Readers
// live in ring_reader.h. Zeroed memory is a valid empty ring. Never allocates, never makes a system call.
#pragma once

#include <atomic>
#include <cstddef>
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
  // Word by word with atomics, so that a reader who copies at the same moment is a race that the language allows. Each
  // word is put together from its fields: an event that was just filled in is then never written to memory and read
  // back, which would cost more than the rest.
  static void store_payload(gpucap_event& slot, const gpucap_event& event) {
    static_assert(offsetof(gpucap_event, thread) == 16 && offsetof(gpucap_event, result) == 20 &&
                  offsetof(gpucap_event, api) == 24 && offsetof(gpucap_event, origin) == 26 &&
                  offsetof(gpucap_event, device) == 28 && offsetof(gpucap_event, operation) == 29 &&
                  offsetof(gpucap_event, kind) == 30 && offsetof(gpucap_event, refused_by) == 31 &&
                  offsetof(gpucap_event, latency_ns) == 56 && offsetof(gpucap_event, reserved) == 60);
    const auto put = [](uint64_t& word, uint64_t value) {
      std::atomic_ref<uint64_t>(word).store(value, std::memory_order_relaxed);
    };
    auto* words = reinterpret_cast<uint64_t*>(&slot);
    const auto at = [](auto field, int byte) { return uint64_t{field} << (8 * byte); };
    put(words[1], event.monotonic_ns);
    put(words[2], at(event.thread, 0) | at(static_cast<uint32_t>(event.result), 4));
    put(words[3], at(event.api, 0) | at(event.origin, 2) | at(event.device, 4) | at(event.operation, 5) |
                      at(event.kind, 6) | at(event.refused_by, 7));
    put(words[4], event.address);
    put(words[5], event.bytes);
    put(words[6], event.used_after);
    put(words[7], at(event.latency_ns, 0) | at(event.reserved, 4));
  }

  gpucap_ring_header* header_ = nullptr;
  gpucap_event* events_ = nullptr;
};

}  // namespace gpucap::wire
