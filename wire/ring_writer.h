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
  RingWriter(gpucap_ring_header* header, gpucap_event* events)
      : header_(header), events_(events), mask_(header == nullptr ? 0 : header->capacity - 1) {}

  [[nodiscard]] bool attached() const { return header_ != nullptr; }

  // An event's words but the first, put together from its fields: an event that was just filled in need then never be
  // written to memory and read back, which would cost more than the rest.
  struct Words {
    uint64_t monotonic_ns, thread_result, names, address, bytes, used_after, latency;
  };
  static Words words_of(const gpucap_event& event) {
    static_assert(offsetof(gpucap_event, monotonic_ns) == 8 && offsetof(gpucap_event, thread) == 16 &&
                  offsetof(gpucap_event, result) == 20 && offsetof(gpucap_event, api) == 24 &&
                  offsetof(gpucap_event, origin) == 26 && offsetof(gpucap_event, device) == 28 &&
                  offsetof(gpucap_event, operation) == 29 && offsetof(gpucap_event, kind) == 30 &&
                  offsetof(gpucap_event, refused_by) == 31 && offsetof(gpucap_event, address) == 32 &&
                  offsetof(gpucap_event, latency_ns) == 56 && offsetof(gpucap_event, reserved) == 60);
    const auto at = [](auto field, int byte) { return uint64_t{field} << (8 * byte); };
    return {event.monotonic_ns,
            at(event.thread, 0) | at(static_cast<uint32_t>(event.result), 4),
            at(event.api, 0) | at(event.origin, 2) | at(event.device, 4) | at(event.operation, 5) | at(event.kind, 6) |
                at(event.refused_by, 7),
            event.address,
            event.bytes,
            event.used_after,
            at(event.latency_ns, 0) | at(event.reserved, 4)};
  }

  // `event.sequence` is ignored. Returns false if the event was dropped.
  bool publish(const gpucap_event& event) {
    uint64_t own_head = 0;
    return header_ != nullptr && publish_words(words_of(event), own_head);
  }
  // Asks for the cache line that publish_words() will write to first, while there is something else to do.
  void prepare() const { prefetch_to_write(&header_->head); }
  // Only where attached(). `own_head` is the thread's own: where the ring's head stood after its latest event.
  __attribute__((always_inline)) bool publish_words(const Words& words, uint64_t& own_head) {
    std::atomic_ref<uint64_t> head(header_->head);
    uint64_t ticket = head.load(std::memory_order_relaxed);
    const bool alone = ticket == own_head;
    gpucap_event* slot = nullptr;
    do {
      slot = &events_[ticket & mask_];
      prefetch_to_write(slot);  // rather than to read first, and then again to write
      const uint64_t complete_last_lap = ticket <= mask_ ? 0 : ticket - mask_;
      // Acquire: pairs with the release below of the writer that filled this slot a lap ago.
      if (std::atomic_ref<uint64_t>(slot->sequence).load(std::memory_order_acquire) != complete_last_lap &&
          head.load(std::memory_order_relaxed) == ticket) [[unlikely]] {
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
    store(*slot, words);
    sequence.store(ticket + 1, std::memory_order_release);  // pairs with the reader's first load
    own_head = ticket + 1;
    // The next event's slot is most often in no near cache any more: fetched while the program goes on, if it is likely
    // to be this thread's.
    if (alone) prefetch_to_write(&events_[own_head & mask_]);
    return true;
  }

 private:
  static void prefetch_to_write(const void* line) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
    __builtin_prefetch(line, 1);
#endif
  }

  // Word by word with atomics, so that a reader who copies at the same moment is a race that the language allows.
  static void store(gpucap_event& slot, const Words& words) {
    const auto put = [](uint64_t& word, uint64_t value) {
      std::atomic_ref<uint64_t>(word).store(value, std::memory_order_relaxed);
    };
    auto* to = reinterpret_cast<uint64_t*>(&slot);
    put(to[1], words.monotonic_ns);
    put(to[2], words.thread_result);
    put(to[3], words.names);
    put(to[4], words.address);
    put(to[5], words.bytes);
    put(to[6], words.used_after);
    put(to[7], words.latency);
  }

  gpucap_ring_header* header_ = nullptr;
  gpucap_event* events_ = nullptr;
  uint64_t mask_ = 0;
};

}  // namespace gpucap::wire
