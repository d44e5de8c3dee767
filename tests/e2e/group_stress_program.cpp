// One member under stress: four threads that take and give in several ways, at random, until the phase changes or they
// are killed. Knows nothing of gpucap. Every call is timed; see group_stress_stats.h for what is counted as a stall.
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/e2e/group_program.h"
#include "tests/e2e/group_stress_stats.h"
#include "tests/e2e/ways.h"

namespace {

constexpr int kThreads = 4;
constexpr size_t kMostHeld = 3;

StressRecord* record = nullptr;
std::atomic<const RunDelay*> delays[kThreads];

uint64_t delay_of_all_ns() {
  uint64_t sum = 0;
  for (const auto& one : delays)
    if (const RunDelay* delay = one.load()) sum += delay->read_ns();
  return sum;
}

template <class Function>
CUresult timed(Function call) {
  const uint64_t delayed_ns = delay_of_all_ns(), began_ns = now_ns();
  const CUresult result = call();
  const uint64_t took_ns = now_ns() - began_ns;
  record->calls.fetch_add(1, std::memory_order_relaxed);
  if (took_ns > record->longest_wall_ns.load(std::memory_order_relaxed) || took_ns > 10'000'000) {
    const uint64_t waited_ns = delay_of_all_ns() - delayed_ns;
    raise_to(record->longest_wall_ns, took_ns);
    raise_to(record->longest_delay_ns, waited_ns < took_ns ? waited_ns : took_ns);
    raise_to(record->longest_stall_ns, waited_ns < took_ns ? took_ns - waited_ns : 0);
  }
  if (result == CUDA_ERROR_OUT_OF_MEMORY) record->refused.fetch_add(1, std::memory_order_relaxed);
  if (result == CUDA_SUCCESS) record->granted.fetch_add(1, std::memory_order_relaxed);
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY) record->odd.fetch_add(1);
  return result;
}

struct Held {
  const Way* way;
  Piece piece;
  size_t bytes;
};

void take_and_give(const DriverFunctions& f, const std::atomic<int>& phase, std::mt19937 random) {
  const Way* const all[] = {&ways().at("alloc"), &ways().at("create"), &ways().at("async")};
  std::vector<Held> held;
  const auto give = [&](size_t which) {
    const Held one = held[which];
    held.erase(held.begin() + static_cast<long>(which));
    timed([&] { return one.way->give(f, one.piece, one.bytes); });
  };
  while (phase.load() == 0) {
    if (!held.empty() && (held.size() == kMostHeld || random() % 3 == 0)) give(random() % held.size());
    Held one{all[random() % 3], {}, (1 + random() % 24) << 21};
    if (one.way == all[0] && random() % 4 == 0) one.bytes = 1 + random() % 200000;
    if (timed([&] { return one.way->take(f, one.bytes, &one.piece); }) == CUDA_SUCCESS) held.push_back(one);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
  }
  while (!held.empty()) give(0);
}

}  // namespace

int stress(const DriverFunctions& f, unsigned number) {
  StressStats* const stats = StressStats::open_at(std::getenv("STRESS_STATS"));
  if (stats == nullptr || number >= StressStats::kMembers) return 3;
  record = &stats->members[number];
  CUcontext context = nullptr;
  if (f.cuInit(0) != CUDA_SUCCESS) return 4;
  // There may be no room for another member's context at this moment.
  while (timed([&] { return f.cuDevicePrimaryCtxRetain(&context, 0); }) != CUDA_SUCCESS) {
    if (stats->phase.load() != 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (context != nullptr) {
    record->joined = 1;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        f.cuCtxSetCurrent(context);
        delays[t] = new RunDelay;  // for the life of the process: the other threads read it
        take_and_give(f, stats->phase, std::mt19937(number * 7919 + static_cast<unsigned>(t)));
      });
    }
    for (std::thread& thread : threads) thread.join();
    f.cuCtxSetCurrent(context);
    f.cuCtxSynchronize();
    f.cuDevicePrimaryCtxRelease_v2(0);
  }
  record->gave_all = 1;
  while (stats->phase.load() != 2) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return 0;
}
