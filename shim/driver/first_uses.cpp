#include "shim/driver/first_uses.h"

#include <atomic>

namespace gpucap::driver::first_uses {
namespace {

// A set of marks, each of a key, an entry point, a context and an epoch; two of them are the same by chance once in 2
// to the 64 only, and then one look is not made. A row holds eight; a ninth takes the place of one of them.
constexpr uint64_t kRows = 2048, kWays = 8;
struct alignas(64) Row {
  std::atomic<uint64_t> marks[kWays];
};
constinit Row rows[kRows] = {};

constinit std::atomic<uint64_t> epoch{1};
constinit std::atomic<uint32_t> unloadings{0};

Row& row_of(uint64_t mark) { return rows[mark >> 53]; }

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

uint64_t Moment::mark_of(uint64_t key) const { return mix(mix(mix(key) ^ context_) ^ (epoch_ << 16 | api_)) | 1; }

bool Moment::had(uint64_t key) const {
  if (context_ == 0) return false;
  const uint64_t mark = mark_of(key);
  for (const std::atomic<uint64_t>& other : row_of(mark).marks)
    if (other.load(std::memory_order_relaxed) == mark) return true;
  return false;
}

void Moment::note(uint64_t key) const {
  if (context_ == 0) return;
  const uint64_t mark = mark_of(key);
  Row& row = row_of(mark);
  for (std::atomic<uint64_t>& place : row.marks) {
    uint64_t nothing = 0;
    if (place.compare_exchange_strong(nothing, mark, std::memory_order_relaxed) || nothing == mark) return;
  }
  row.marks[mark >> 1 & (kWays - 1)].store(mark, std::memory_order_relaxed);
}

Unloading::Unloading() { unloadings.fetch_add(1); }
Unloading::~Unloading() {
  if (went_) epoch.fetch_add(1);
  unloadings.fetch_sub(1);
}

}  // namespace gpucap::driver::first_uses
