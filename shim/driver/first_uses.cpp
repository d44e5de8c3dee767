#include "shim/driver/first_uses.h"

#include <atomic>

namespace gpucap::driver::first_uses {
namespace {

// A set of marks, each of a key, an entry point, a context, an epoch and how often; two of them are the same by chance
// once in 2 to the 63 only, and then one look is not made. A row holds eight; a ninth takes the place of one of them.
constexpr uint64_t kRowBits = 12, kWays = 8;
struct alignas(64) Row {
  std::atomic<uint64_t> marks[kWays];
};
constinit Row rows[1 << kRowBits] = {};

constinit std::atomic<uint64_t> epoch{1};
constinit std::atomic<uint32_t> unloadings{0};

// Every bit of the word depends on every other (the finaliser of MurmurHash3).
uint64_t mix(uint64_t word) {
  word = (word ^ word >> 33) * 0xff51afd7ed558ccdu;
  word = (word ^ word >> 33) * 0xc4ceb9fe1a85ec53u;
  return word ^ word >> 33;
}

}  // namespace

Moment::Moment(Api api) : epoch_(epoch.load()), api_(static_cast<uint64_t>(api)) {
  CUcontext context = nullptr;
  if (unloadings.load() != 0 || real().cuCtxGetCurrent(&context) != CUDA_SUCCESS) return;
  context_ = reinterpret_cast<uint64_t>(context);
}

// What a key is called in the set: its row, and its marks after one use and after two.
struct Moment::Name {
  Row* row;
  uint64_t first, second;
};

Moment::Name Moment::name_of(uint64_t key) const {
  const uint64_t base = mix(mix(mix(key) ^ context_) ^ (epoch_ << 16 | api_));
  return {&rows[base >> (64 - kRowBits)], base | 1, mix(base) | 1};
}

bool Moment::had_both(uint64_t key) const {
  if (context_ == 0) return false;
  const Name name = name_of(key);
  bool found = false;
  for (const std::atomic<uint64_t>& mark : name.row->marks)
    found = found || mark.load(std::memory_order_relaxed) == name.second;
  return found && epoch.load() == epoch_ && unloadings.load() == 0;
}

void Moment::note(uint64_t key) const {
  if (context_ == 0) return;
  const Name name = name_of(key);
  for (std::atomic<uint64_t>& mark : name.row->marks) {
    uint64_t there = mark.load(std::memory_order_relaxed);
    if (there == name.second) return;
    if (there == name.first && mark.compare_exchange_strong(there, name.second, std::memory_order_relaxed)) return;
  }
  for (std::atomic<uint64_t>& mark : name.row->marks) {
    uint64_t nothing = 0;
    if (mark.compare_exchange_strong(nothing, name.first, std::memory_order_relaxed)) return;
  }
  name.row->marks[name.second >> 1 & (kWays - 1)].store(name.first, std::memory_order_relaxed);
}

Unloading::Unloading() { unloadings.fetch_add(1); }
Unloading::~Unloading() {
  if (went_) epoch.fetch_add(1);
  unloadings.fetch_sub(1);
}

}  // namespace gpucap::driver::first_uses
