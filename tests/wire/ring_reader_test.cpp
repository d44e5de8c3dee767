// The ring's both ends: on an array with one thread, then with many threads, then with a writer killed in mid-event.
#include "wire/ring_reader.h"

#include <sys/mman.h>

#include <thread>
#include <vector>

#include "tests/wire/scratch.h"
#include "wire/ring_writer.h"

namespace gpucap::wire::test {
namespace {

struct Ring {
  explicit Ring(uint64_t capacity) : events(capacity) { header.capacity = capacity; }
  RingWriter writer() { return {&header, events.data()}; }
  RingReader<MappedRingSource> reader(uint64_t position = 0, uint64_t dropped_before = 0) {
    return {MappedRingSource(&header, events.data()), header.capacity, position, dropped_before};
  }
  gpucap_ring_header header = {};
  std::vector<gpucap_event> events;
};

gpucap_event event_of(uint64_t value) {
  gpucap_event event = {};
  event.monotonic_ns = value;
  event.address = value * 3;
  event.bytes = ~value;
  event.used_after = value ^ 0x5555555555555555u;
  event.latency_ns = static_cast<uint32_t>(value);
  event.operation = GPUCAP_OP_CHARGE;
  return event;
}

bool whole(const gpucap_event& event) {
  const uint64_t value = event.monotonic_ns;
  return event.address == value * 3 && event.bytes == ~value && event.used_after == (value ^ 0x5555555555555555u) &&
         event.latency_ns == static_cast<uint32_t>(value) && event.operation == GPUCAP_OP_CHARGE;
}

TEST(RingOnAnArray, EmptyZeroedMemoryIsAnEmptyRing) {
  Ring ring(8);
  auto reader = ring.reader();
  gpucap_event event;
  EXPECT_EQ(reader.next(false, &event), RingStatus::kCaughtUp);
  EXPECT_EQ(reader.lost(), 0u);
}

TEST(RingOnAnArray, EventsComeInOrderAndWhole) {
  Ring ring(8);
  auto reader = ring.reader();
  gpucap_event event;
  for (uint64_t round = 0; round < 10; ++round) {
    for (uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(ring.writer().publish(event_of(round * 5 + i)));
    for (uint64_t i = 0; i < 5; ++i) {
      ASSERT_EQ(reader.next(false, &event), RingStatus::kEvent);
      EXPECT_EQ(event.monotonic_ns, round * 5 + i);
      EXPECT_TRUE(whole(event));
    }
    EXPECT_EQ(reader.next(false, &event), RingStatus::kCaughtUp);
  }
  EXPECT_EQ(reader.lost(), 0u);
}

TEST(RingOnAnArray, ALappedReaderKnowsHowManyItMissed) {
  Ring ring(8);
  auto reader = ring.reader();
  for (uint64_t i = 0; i < 21; ++i) ASSERT_TRUE(ring.writer().publish(event_of(i)));
  gpucap_event event;
  for (uint64_t i = 13; i < 21; ++i) {
    ASSERT_EQ(reader.next(false, &event), RingStatus::kEvent);
    EXPECT_EQ(event.monotonic_ns, i);
  }
  EXPECT_EQ(reader.next(false, &event), RingStatus::kCaughtUp);
  EXPECT_EQ(reader.lost(), 13u);
}

TEST(RingOnAnArray, ALapBetweenTheBatchAndTheNextReadIsCountedOnce) {
  Ring ring(8);
  auto reader = ring.reader();
  for (uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(ring.writer().publish(event_of(i)));
  gpucap_event event;
  ASSERT_EQ(reader.next(false, &event), RingStatus::kEvent);  // holds all 8 in its batch from here on
  for (uint64_t i = 8; i < 30; ++i) ASSERT_TRUE(ring.writer().publish(event_of(i)));
  uint64_t delivered = 1;
  while (reader.next(false, &event) == RingStatus::kEvent) ++delivered;
  EXPECT_EQ(delivered + reader.lost(), 30u);
  EXPECT_EQ(event.monotonic_ns, 29u);
}

TEST(RingOnAnArray, AReaderThatStartsAtTheHeadSeesOnlyWhatComesAfter) {
  Ring ring(4);
  for (uint64_t i = 0; i < 9; ++i) ASSERT_TRUE(ring.writer().publish(event_of(i)));
  ring.header.dropped = 5;
  auto reader = ring.reader(ring.header.head, ring.header.dropped);
  gpucap_event event;
  EXPECT_EQ(reader.next(false, &event), RingStatus::kCaughtUp);
  ASSERT_TRUE(ring.writer().publish(event_of(9)));
  ASSERT_EQ(reader.next(false, &event), RingStatus::kEvent);
  EXPECT_EQ(event.monotonic_ns, 9u);
  EXPECT_EQ(reader.lost(), 0u);
}

// What a writer leaves behind that stopped in the middle of publish(): before and after it marked the slot.
void claim(Ring* ring, bool mark) {
  const uint64_t ticket = ring->header.head++;
  if (mark) ring->events[ticket % ring->header.capacity].sequence = (ticket + 1) | kEventBeingWritten;
}

class UnfinishedEvent : public testing::TestWithParam<bool> {};

TEST_P(UnfinishedEvent, OfALiveWriterIsWaitedFor) {
  Ring ring(4);
  for (uint64_t i = 0; i < 6; ++i) ASSERT_TRUE(ring.writer().publish(event_of(i)));
  auto reader = ring.reader(5);
  gpucap_event event;
  ASSERT_EQ(reader.next(false, &event), RingStatus::kEvent);
  claim(&ring, GetParam());
  EXPECT_EQ(reader.next(false, &event), RingStatus::kNotYet);
  EXPECT_EQ(reader.next(false, &event), RingStatus::kNotYet);
  ASSERT_TRUE(ring.writer().publish(event_of(7)));
  EXPECT_EQ(reader.next(false, &event), RingStatus::kNotYet) << "a later event must not overtake it";
  ring.events[6 % 4] = event_of(6);
  ring.events[6 % 4].sequence = 7;
  ASSERT_EQ(reader.next(false, &event), RingStatus::kEvent);
  EXPECT_EQ(event.monotonic_ns, 6u);
  ASSERT_EQ(reader.next(false, &event), RingStatus::kEvent);
  EXPECT_EQ(event.monotonic_ns, 7u);
  EXPECT_EQ(reader.lost(), 0u);
}

TEST_P(UnfinishedEvent, OfADeadWriterIsLostAndTheRestIsRead) {
  Ring ring(4);
  ASSERT_TRUE(ring.writer().publish(event_of(0)));
  claim(&ring, GetParam());
  ASSERT_TRUE(ring.writer().publish(event_of(2)));
  auto reader = ring.reader();
  gpucap_event event;
  ASSERT_EQ(reader.next(true, &event), RingStatus::kEvent);
  ASSERT_EQ(reader.next(true, &event), RingStatus::kEvent);
  EXPECT_EQ(event.monotonic_ns, 2u);
  EXPECT_EQ(reader.next(true, &event), RingStatus::kCaughtUp);
  EXPECT_EQ(reader.lost(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Marked, UnfinishedEvent, testing::Bool());

TEST(RingOnAnArray, AnEventThatFindsItsSlotStillBeingWrittenIsDroppedAndCounted) {
  Ring ring(4);
  claim(&ring, true);
  uint64_t published = 0;
  for (uint64_t i = 1; i < 10; ++i) published += ring.writer().publish(event_of(i)) ? 1 : 0;
  EXPECT_EQ(published, 3u);
  auto reader = ring.reader();
  gpucap_event event;
  uint64_t delivered = 0;
  while (reader.next(true, &event) == RingStatus::kEvent) ++delivered;
  EXPECT_EQ(delivered, 3u);
  EXPECT_EQ(reader.lost(), 1u + 6u);
}

TEST(RingOnAnArray, ImpossibleCountersEndWithoutHarm) {
  Ring ring(4);
  gpucap_event event;
  for (const uint64_t head : {UINT64_MAX, UINT64_MAX - 1, uint64_t{1} << 63, uint64_t{5}}) {
    ring.header.head = head;
    auto reader = ring.reader();
    EXPECT_EQ(reader.next(true, &event), RingStatus::kCaughtUp);
    ring.header.head = 1;  // backwards
    EXPECT_EQ(reader.next(true, &event), RingStatus::kCaughtUp);
  }
  for (gpucap_event& slot : ring.events) slot.sequence = UINT64_MAX;
  ring.header.head = 4;
  auto reader = ring.reader();
  EXPECT_EQ(reader.next(false, &event), RingStatus::kCaughtUp);
  EXPECT_EQ(reader.lost(), 4u);
}

TEST(RingWithThreads, DeliveredPlusLostIsAllThatWasAttemptedAndNothingIsTorn) {
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kEach = 20000;
  Ring ring(64);
  std::vector<std::thread> writers;
  std::atomic<uint64_t> running{kThreads};
  for (uint64_t t = 0; t < kThreads; ++t) {
    writers.emplace_back([&ring, &running, t] {
      for (uint64_t i = 0; i < kEach; ++i) static_cast<void>(ring.writer().publish(event_of(t << 32 | i)));
      running.fetch_sub(1, std::memory_order_release);
    });
  }
  auto reader = ring.reader();
  gpucap_event event;
  uint64_t delivered = 0;
  uint64_t next_of_thread[kThreads] = {};
  for (bool last_pass = false;;) {
    const RingStatus status = reader.next(false, &event);
    if (status == RingStatus::kEvent) {
      ++delivered;
      ASSERT_TRUE(whole(event));
      const uint64_t thread = event.monotonic_ns >> 32;
      ASSERT_LT(thread, kThreads);
      const uint64_t number = event.monotonic_ns & 0xffffffffu;
      ASSERT_GE(number, next_of_thread[thread]) << "a thread's events came out of order";
      next_of_thread[thread] = number + 1;
    } else if (last_pass) {
      ASSERT_EQ(status, RingStatus::kCaughtUp);
      break;
    } else {
      last_pass = running.load(std::memory_order_acquire) == 0;
    }
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_GT(delivered, 0u);
  EXPECT_EQ(delivered + reader.lost(), kThreads * kEach);
}

// Kills a process while four of its threads publish as fast as they can, again and again.
TEST(RingWithProcesses, AWriterKilledAtAnyMomentLeavesAReadableRing) {
  constexpr uint64_t kCapacity = 256;
  constexpr size_t kBytes = sizeof(gpucap_ring_header) + kCapacity * sizeof(gpucap_event);
  for (int round = 0; round < 20; ++round) {
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    auto* header = static_cast<gpucap_ring_header*>(memory);
    auto* events = static_cast<gpucap_event*>(static_cast<void*>(header + 1));
    header->capacity = kCapacity;
    Child child([&](const Child::Channel& channel) {
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
          RingWriter writer(header, events);
          for (uint64_t i = 0;; ++i) static_cast<void>(writer.publish(event_of(i)));
        });
      }
      channel.say('r');
      threads[0].join();
    });
    ASSERT_EQ(child.hear(), 'r');
    RingReader<MappedRingSource> reader(MappedRingSource(header, events), kCapacity);
    gpucap_event event;
    uint64_t delivered = 0;
    for (int i = 0; i < 2000 + round * 100; ++i) {
      if (reader.next(false, &event) == RingStatus::kEvent) {
        ++delivered;
        ASSERT_TRUE(whole(event));
      }
    }
    child.kill_and_wait();
    RingStatus status;
    while ((status = reader.next(true, &event)) == RingStatus::kEvent) {
      ++delivered;
      ASSERT_TRUE(whole(event));
    }
    ASSERT_EQ(status, RingStatus::kCaughtUp);
    EXPECT_EQ(delivered + reader.lost(), header->head + header->dropped);
    munmap(memory, kBytes);
  }
}

}  // namespace
}  // namespace gpucap::wire::test
