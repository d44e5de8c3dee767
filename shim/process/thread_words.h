// What a thread of the host program keeps for itself, so that threads which allocate at once share as few cache lines
// as can be: a lane (wire/layout.h) that it alone writes to, with plain stores, and the words of its call on the way.
// A lane is taken at the thread's first call and found free again once the thread is gone; threads that find none share
// lane 0 and pay for locked additions. Has no destructor: nothing runs at a thread's end.
#pragma once

#include <atomic>
#include <cstdint>

namespace gpucap {

inline constexpr uint32_t kSharedLane = 0;
inline constexpr uint32_t kLanes = 17;

struct ThreadWords {
  uint32_t id;    // of the kernel; 0 before set_up_thread
  uint32_t lane;  // a number below kLanes
  // The runtime entry point that the current call came through, as an API number; 0 for none. Saved and restored by the
  // runtime hooks around the call.
  uint16_t origin;
  uint16_t calls_until_timed;
  // Counts the driver's allocating calls that came through our hooks, so that the runtime hooks can tell whether theirs
  // did.
  uint32_t charging_calls;
  // Of the latest call into the driver, by the exact clock: when it came back, and how long it took; 0: not measured.
  uint64_t call_ended_ns;
  uint64_t call_took_ns;
  uint64_t coarse_ns;  // the coarse clock when it was last looked at
  uint64_t ring_head;  // of the event ring, after the thread's latest event
  uint64_t told_ns;    // the time that the thread's latest event has: none is told as earlier
};
extern constinit thread_local ThreadWords thread_words __attribute__((tls_model("initial-exec")));

__attribute__((cold)) void set_up_thread();
// How many lanes, beside the shared one, any thread has had: as many as there were ever threads at once, at most.
[[nodiscard]] uint32_t lanes_given();
inline ThreadWords& this_thread() {
  if (thread_words.id == 0) [[unlikely]]
    set_up_thread();
  return thread_words;
}
// The calling thread's lane, where it has been past this_thread() before, as whoever promised or began a flight has;
// the shared one otherwise.
inline uint32_t lane_of_thread() { return thread_words.lane; }

// Adds to a word of the calling thread's lane.
template <typename T>
void add_in_lane(T& word, T delta, uint32_t lane) {
  const std::atomic_ref<T> at(word);
  if (lane == kSharedLane) [[unlikely]] {
    at.fetch_add(delta, std::memory_order_relaxed);
  } else {
    at.store(at.load(std::memory_order_relaxed) + delta, std::memory_order_relaxed);
  }
}

// The same for two words of a lane.
template <typename T>
void add_in_lane(T& one, T to_one, T& other, T to_other, uint32_t lane) {
  if (lane == kSharedLane) [[unlikely]] {
    std::atomic_ref<T>(one).fetch_add(to_one, std::memory_order_relaxed);
    std::atomic_ref<T>(other).fetch_add(to_other, std::memory_order_relaxed);
  } else {
    const auto add = [](std::atomic_ref<T> at, T delta) {
      at.store(at.load(std::memory_order_relaxed) + delta, std::memory_order_relaxed);
    };
    add(std::atomic_ref<T>(one), to_one);
    add(std::atomic_ref<T>(other), to_other);
  }
}

}  // namespace gpucap
