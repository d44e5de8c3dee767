// A program that uses stream-ordered pools in the ways that decide what gpucap may take for granted about their size.
// Knows nothing of gpucap. Says "READY" after each step and waits for a line on stdin; pool_growth_test.cpp looks then.
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "tests/e2e/driver_functions.h"
#include "tests/e2e/steps.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;
DriverFunctions f;
CUcontext context = nullptr;

CUdeviceptr take(size_t bytes) {
  CUdeviceptr pointer = 0;
  must(f.cuMemAllocAsync(&pointer, bytes, nullptr), "cuMemAllocAsync");
  return pointer;
}
void give(CUdeviceptr pointer) { must(f.cuMemFreeAsync(pointer, nullptr), "cuMemFreeAsync"); }

void one_thread() {
  CUdeviceptr first = take(20 * kMiB), second = take(20 * kMiB);
  pause_here();  // two steps
  give(take(kMiB));
  pause_here();  // a block that was not there before
  for (int i = 0; i < 1000; ++i) give(take(kMiB));
  pause_here();  // the same again and again
  give(first);
  give(second);
  must(f.cuCtxSynchronize(), "cuCtxSynchronize");
  pause_here();  // all of it went back
  first = take(20 * kMiB);
  pause_here();  // where it had been before, but anew
  give(first);
  must(f.cuCtxSynchronize(), "cuCtxSynchronize");
}

CUmemoryPool default_pool() {
  CUmemoryPool pool = nullptr;
  must(f.cuDeviceGetDefaultMemPool(&pool, 0), "cuDeviceGetDefaultMemPool");
  return pool;
}

void keep_up_to(cuuint64_t bytes) {
  must(f.cuMemPoolSetAttribute(default_pool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes), "cuMemPoolSetAttribute");
}

// As a training loop does it: each step takes memory, gives it back, and waits for the card.
void take_give_and_synchronise(int steps) {
  for (int i = 0; i < steps; ++i) {
    const CUdeviceptr blocks[] = {take(20 * kMiB), take(3 * kMiB), take(kMiB), take(20 * kMiB)};
    for (const CUdeviceptr block : blocks) give(block);
    must(f.cuCtxSynchronize(), "cuCtxSynchronize");
  }
}

void step_by_step() {
  std::this_thread::sleep_for(
      std::chrono::milliseconds(2200));  // a program that has just begun is looked at more often
  keep_up_to(UINT64_MAX);
  take_give_and_synchronise(1);
  pause_here();  // kept
  take_give_and_synchronise(200);
  pause_here();  // kept each time
  keep_up_to(0);
  must(f.cuCtxSynchronize(), "cuCtxSynchronize");
  pause_here();  // went back, though nothing was freed since the last time
  take_give_and_synchronise(200);
  pause_here();  // went back each time
  keep_up_to(UINT64_MAX);
  for (int i = 0; i < 200; ++i) {
    take_give_and_synchronise(1);
    must(f.cuMemPoolTrimTo(default_pool(), 0), "cuMemPoolTrimTo");
  }
  pause_here();  // trimmed each time
  keep_up_to(0);
}

// A block that finds no gap is given free memory of the pool from elsewhere; what was there before is not, any more.
void moved() {
  keep_up_to(UINT64_MAX);
  CUdeviceptr first = take(32 * kMiB);
  const CUdeviceptr second = take(32 * kMiB);
  CUdeviceptr third = take(32 * kMiB);
  give(first);
  give(third);
  third = take(64 * kMiB);
  pause_here();  // the pool is as large as before
  first = take(32 * kMiB);
  pause_here();  // where the first was before, but anew
  for (const CUdeviceptr block : {first, second, third}) give(block);
  keep_up_to(0);
  must(f.cuCtxSynchronize(), "cuCtxSynchronize");
}

void destroyed_early() {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  CUdeviceptr blocks[3] = {};
  must(f.cuMemPoolCreate(&pool, &properties), "cuMemPoolCreate");
  for (CUdeviceptr& block : blocks)
    must(f.cuMemAllocFromPoolAsync(&block, 40 * kMiB, pool, nullptr), "cuMemAllocFromPoolAsync");
  give(blocks[0]);
  must(f.cuMemPoolDestroy(pool), "cuMemPoolDestroy");
  give(blocks[1]);
  must(f.cuCtxSynchronize(), "cuCtxSynchronize");
  pause_here();  // one block outlives its pool
  give(blocks[2]);
  must(f.cuCtxSynchronize(), "cuCtxSynchronize");
  pause_here();  // none does
}

// Takes, frees and synchronises at random; keeps a few blocks.
void at_random(unsigned seed, std::vector<CUdeviceptr>* kept) {
  must(f.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  std::mt19937 random(seed);
  for (int i = 0; i < 2000; ++i) {
    const auto what = random() % 100;
    if (what < 55 && kept->size() < 20) {
      kept->push_back(take((1 + random() % 24) * kMiB));
    } else if (what < 97 && !kept->empty()) {
      const size_t which = random() % kept->size();
      give((*kept)[which]);
      kept->erase(kept->begin() + static_cast<std::ptrdiff_t>(which));
    } else {
      must(f.cuCtxSynchronize(), "cuCtxSynchronize");
    }
  }
}

void many_threads() {
  std::vector<CUdeviceptr> kept[4];
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) threads.emplace_back(at_random, i + 1, &kept[i]);
  for (std::thread& thread : threads) thread.join();
  pause_here();  // at rest, with blocks that live and without a last synchronise
  for (std::vector<CUdeviceptr>& blocks : kept)
    for (const CUdeviceptr block : blocks) give(block);
  must(f.cuCtxSynchronize(), "cuCtxSynchronize");
  pause_here();
}

// Takes blocks of all sizes from one pool until nothing more is granted, gives some back, and goes on: the free memory
// of the pool is never in one piece.
void to_the_cap(unsigned seed, int steps) {
  must(f.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  std::mt19937 random(seed);
  std::vector<CUdeviceptr> kept;
  for (int i = 0; i < steps; ++i) {
    const bool takes = random() % 100 < 60;
    const size_t bytes = (1 + random() % (random() % 4 == 0 ? 200 : 31)) * kMiB - 512;
    CUdeviceptr block = 0;
    const CUresult result = takes ? f.cuMemAllocAsync(&block, bytes, nullptr) : CUDA_ERROR_NOT_READY;
    if (result == CUDA_SUCCESS) {
      kept.push_back(block);
      continue;
    }
    if (result != CUDA_ERROR_NOT_READY && result != CUDA_ERROR_OUT_OF_MEMORY) must(result, "cuMemAllocAsync");
    size_t gone = result == CUDA_ERROR_OUT_OF_MEMORY ? kept.size() / 2 : 1;
    for (; gone > 0 && !kept.empty(); --gone) {
      const size_t which = random() % kept.size();
      give(kept[which]);
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
  for (const CUdeviceptr block : kept) give(block);
}

void fill_up(std::vector<CUdeviceptr>* filled) {
  CUdeviceptr block = 0;
  while (f.cuMemAlloc_v2(&block, 2 * kMiB) == CUDA_SUCCESS) filled->push_back(block);
}

// Free memory in three places is moved to a fourth; then the three are used anew, just below the cap.
void moved_at_the_cap() {
  std::vector<CUdeviceptr> filled;
  fill_up(&filled);
  for (int i = 0; i < 161; ++i) {
    must(f.cuMemFree_v2(filled.back()), "cuMemFree");
    filled.pop_back();
  }
  CUdeviceptr places[3], between[3];
  for (int i = 0; i < 3; ++i) {
    places[i] = take(32 * kMiB);
    between[i] = take(32 * kMiB);
  }
  for (const CUdeviceptr place : places) give(place);
  const CUdeviceptr large = take(96 * kMiB);
  for (CUdeviceptr& place : places) place = take(32 * kMiB);
  fill_up(&filled);
  for (const CUdeviceptr block : filled) must(f.cuMemFree_v2(block), "cuMemFree");
  for (const CUdeviceptr block : {large, places[0], places[1], places[2], between[0], between[1], between[2]})
    give(block);
  must(f.cuMemPoolTrimTo(default_pool(), 0), "cuMemPoolTrimTo");
}

void all_to_the_cap() {
  keep_up_to(UINT64_MAX);
  moved_at_the_cap();
  pause_here();
  to_the_cap(1, 3000);
  pause_here();  // one thread
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) threads.emplace_back(to_the_cap, i + 2, 1000);
  for (std::thread& thread : threads) thread.join();
  must(f.cuCtxSynchronize(), "cuCtxSynchronize");
  pause_here();  // four threads
}

}  // namespace

int main(int argc, char**) {
  f = reach("linked");
  must(f.cuInit(0), "cuInit");
  must(f.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  must(f.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  if (argc > 1) {
    all_to_the_cap();
    return 0;
  }
  one_thread();
  step_by_step();
  moved();
  destroyed_early();
  many_threads();
  return 0;
}
