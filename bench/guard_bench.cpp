// The hot paths, each as often as asked, for counting instructions: check_instructions.py runs this under callgrind and
// reads what was counted within each guard_ function. On a driver that the preload stands before, or none for the
// parts.
//   guard_bench TIMES
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench/driver.h"
#include "shim/core/allocation_table.h"
#include "shim/process/pages.h"
#include "wire/ring_writer.h"

using gpucap::bench::check;
using gpucap::bench::driver;

#define GPUCAP_GUARD extern "C" __attribute__((noinline, visibility("default"))) void

GPUCAP_GUARD guard_async_pair(CUstream stream, uint64_t times) {
  CUdeviceptr pointer = 0;
  for (uint64_t i = 0; i < times; ++i) {
    check(driver().cuMemAllocAsync(&pointer, 1 << 20, stream), "cuMemAllocAsync");
    check(driver().cuMemFreeAsync(pointer, stream), "cuMemFreeAsync");
  }
}

GPUCAP_GUARD guard_small_pair(uint64_t times) {
  CUdeviceptr pointer = 0;
  for (uint64_t i = 0; i < times; ++i) {
    check(driver().cuMemAlloc_v2(&pointer, 512), "cuMemAlloc");
    check(driver().cuMemFree_v2(pointer), "cuMemFree");
  }
}

GPUCAP_GUARD guard_large_pair(uint64_t times) {
  CUdeviceptr pointer = 0;
  for (uint64_t i = 0; i < times; ++i) {
    check(driver().cuMemAlloc_v2(&pointer, 4 << 20), "cuMemAlloc");
    check(driver().cuMemFree_v2(pointer), "cuMemFree");
  }
}

GPUCAP_GUARD guard_memory_info(uint64_t times) {
  size_t free_bytes = 0, total_bytes = 0;
  for (uint64_t i = 0; i < times; ++i) check(driver().cuMemGetInfo_v2(&free_bytes, &total_bytes), "cuMemGetInfo");
}

GPUCAP_GUARD guard_publish(gpucap::wire::RingWriter* ring, uint64_t times) {
  gpucap_event event{};
  for (uint64_t i = 0; i < times; ++i) {
    event.address = i;
    ring->publish(event);
  }
}

GPUCAP_GUARD guard_note_and_take(gpucap::core::AllocationTable* table, uint64_t times) {
  gpucap::core::Record record;
  record.space = gpucap::core::Space::kPointer;
  for (uint64_t i = 0; i < times; ++i) {
    record.key = 0x7e0000000000u + i % 1024 * 512;
    if (!table->insert(record) || !table->take(record.space, record.key, &record)) std::abort();
  }
}

int main(int count, char** arguments) {
  const uint64_t times = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 0;
  if (times == 0) {
    std::fprintf(stderr, "usage: guard_bench TIMES\n");
    return 2;
  }
  gpucap::bench::start_driver();
  CUdeviceptr in_block = 0, in_pool = 0;  // so that the first block and the first step of the pool are there throughout
  check(driver().cuMemAlloc_v2(&in_block, 512), "cuMemAlloc");
  check(driver().cuMemAllocAsync(&in_pool, 512, nullptr), "cuMemAllocAsync");
  CUstream stream = nullptr;
  check(driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  gpucap_ring_header header{};
  std::vector<gpucap_event> events(1024);
  header.capacity = events.size();
  gpucap::wire::RingWriter ring(&header, events.data());
  static gpucap::core::AllocationTable table(gpucap::kernel_pages());
  for (const uint64_t each : {uint64_t{100}, times}) {  // once to warm up; what is counted last is what is read
    guard_async_pair(stream, each);
    guard_small_pair(each);
    guard_large_pair(each);
    guard_memory_info(each);
    guard_publish(&ring, each);
    guard_note_and_take(&table, each);
  }
  return 0;
}
