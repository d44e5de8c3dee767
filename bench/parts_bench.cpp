// The parts of an allocation's way through gpucap, each by itself: reserve and settle, note and take, publish, read a
// limit.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "shim/core/allocation_table.h"
#include "shim/core/block_map.h"
#include "shim/core/ledger.h"
#include "shim/core/limits.h"
#include "shim/process/pages.h"
#include "wire/ring_writer.h"

namespace gpucap {
namespace {

void reserve_and_settle(benchmark::State& state) {
  static core::Ledger ledger;
  ledger.set_limit(uint64_t{4} << 30);
  for (auto _ : state) {
    if (!ledger.try_reserve(2 << 20)) state.SkipWithError("refused");
    ledger.settle(2 << 20, 2 << 20);
    ledger.charge(-(2 << 20));
  }
}
BENCHMARK(reserve_and_settle)->Threads(1)->Threads(2);

// Beside so many live records.
void note_and_take(benchmark::State& state) {
  auto table = std::make_unique<core::AllocationTable>(kernel_pages());
  core::Record record;
  record.space = core::Space::kPointer;
  for (int64_t i = 0; i < state.range(0); ++i) {
    record.key = 0x7f0000000000u + static_cast<uint64_t>(i) * 512;
    if (!table->insert(record)) state.SkipWithError("no memory");
  }
  record.key = 0x7e0000000000u;
  for (auto _ : state) {
    benchmark::DoNotOptimize(table->insert(record));
    benchmark::DoNotOptimize(table->take(core::Space::kPointer, record.key, &record));
  }
}
BENCHMARK(note_and_take)->Arg(0)->Arg(20000)->Arg(1000000);

void pack_a_small_block(benchmark::State& state) {
  static core::BlockMap map;
  const core::PageSource pages = kernel_pages();
  map.add(0x7f0000000000u, 512, pages);
  for (auto _ : state) {
    map.add(0x7f0000000200u, 512, pages);
    map.remove(0x7f0000000200u, 512);
  }
}
BENCHMARK(pack_a_small_block);

void publish_an_event(benchmark::State& state) {
  static gpucap_ring_header header;
  static std::vector<gpucap_event> events(16384);
  header.capacity = events.size();
  wire::RingWriter ring(&header, events.data());
  gpucap_event event{};
  for (auto _ : state) benchmark::DoNotOptimize(ring.publish(event));
}
BENCHMARK(publish_an_event)->Threads(1)->Threads(2);

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
