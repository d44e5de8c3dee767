// The parts of an allocation's way through gpucap, each by itself: reserve and settle, note and take, publish, read, a
// limit's text. run_pairs.py reads the figures from its JSON; the address swap is measured where there is a driver, by
// driver_bench's address_lookup.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "shim/core/allocation_table.h"
#include "shim/core/block_map.h"
#include "shim/core/ledger.h"
#include "shim/core/limits.h"
#include "shim/process/pages.h"
#include "wire/ring_reader.h"
#include "wire/ring_writer.h"

namespace gpucap {
namespace {

constexpr int kMostThreads = 16;

void reserve_and_settle(benchmark::State& state) {
  static core::Ledger ledger;
  ledger.set_limit(uint64_t{4} << 30);
  for (auto _ : state) {
    if (!ledger.try_reserve(2 << 20)) state.SkipWithError("refused");
    ledger.settle(2 << 20, 2 << 20);
    ledger.charge(-(2 << 20));
  }
}
BENCHMARK(reserve_and_settle)->ThreadRange(1, kMostThreads)->UseRealTime();

core::Record record_at(uint64_t key) {
  core::Record record;
  record.space = core::Space::kPointer;
  record.key = key;
  return record;
}

// Beside so many live records.
void note_and_take(benchmark::State& state) {
  auto table = std::make_unique<core::AllocationTable>(kernel_pages());
  for (int64_t i = 0; i < state.range(0); ++i)
    if (!table->insert(record_at(0x7f0000000000u + static_cast<uint64_t>(i) * 512))) state.SkipWithError("no memory");
  core::Record record = record_at(0x7e0000000000u);
  for (auto _ : state) {
    benchmark::DoNotOptimize(table->insert(record));
    benchmark::DoNotOptimize(table->take(core::Space::kPointer, record.key, &record));
    record.key = 0x7e0000000000u + (record.key + 512) % (1 << 20);  // not the same slot each time
  }
  state.counters["bytes_of_memory"] = static_cast<double>(table->bytes_of_memory());
}
BENCHMARK(note_and_take)->Arg(0)->RangeMultiplier(10)->Range(1, 1000000);

void note_and_take_on_threads(benchmark::State& state) {
  static core::AllocationTable table(kernel_pages());
  core::Record record = record_at(0x7f0000000000u + (static_cast<uint64_t>(state.thread_index()) << 24));
  for (auto _ : state) {
    benchmark::DoNotOptimize(table.insert(record));
    benchmark::DoNotOptimize(table.take(core::Space::kPointer, record.key, &record));
  }
}
BENCHMARK(note_and_take_on_threads)->ThreadRange(1, kMostThreads)->UseRealTime();

// Beside so many blocks of 2 MiB that are in use.
void pack_a_small_block(benchmark::State& state) {
  auto map = std::make_unique<core::BlockMap>();
  const core::PageSource pages = kernel_pages();
  const uint64_t base = 0x7f0000000000u;
  for (int64_t i = 0; i < state.range(0); ++i)
    map->add(base + static_cast<uint64_t>(i) * core::BlockMap::kBlockBytes, 512, pages);
  for (auto _ : state) {
    map->add(base + 512, 512, pages);
    map->remove(base + 512, 512);
  }
}
BENCHMARK(pack_a_small_block)->Arg(1)->Arg(100)->Arg(10000);

constexpr uint64_t kRingCapacity = 16384;

void publish_an_event(benchmark::State& state) {
  static gpucap_ring_header header;
  static std::vector<gpucap_event> events(kRingCapacity);
  header.capacity = events.size();
  wire::RingWriter ring(&header, events.data());
  gpucap_event event{};
  for (auto _ : state) benchmark::DoNotOptimize(ring.publish(event));
}
BENCHMARK(publish_an_event)->ThreadRange(1, kMostThreads)->UseRealTime();

// Half a ring is written without being timed, then read.
void read_an_event(benchmark::State& state) {
  static gpucap_ring_header header;
  static std::vector<gpucap_event> events(kRingCapacity);
  header.capacity = events.size();
  wire::RingWriter writer(&header, events.data());
  wire::RingReader<wire::MappedRingSource> reader(wire::MappedRingSource(&header, events.data()), kRingCapacity,
                                                  header.head, header.dropped);
  gpucap_event event{};
  uint64_t unread = 0;
  for (auto _ : state) {
    if (unread == 0) {
      state.PauseTiming();
      for (; unread < kRingCapacity / 2; ++unread) writer.publish(event);
      state.ResumeTiming();
    }
    if (reader.next(false, &event) != wire::RingStatus::kEvent) state.SkipWithError("an event is missing");
    --unread;
  }
}
BENCHMARK(read_an_event);

void read_a_limit(benchmark::State& state) {
  for (auto _ : state) {
    core::LimitRules rules;
    core::LimitError error;
    benchmark::DoNotOptimize(rules.parse("0=4G,1=8GiB,*=50%", &error));
  }
}
BENCHMARK(read_a_limit);

}  // namespace
}  // namespace gpucap
