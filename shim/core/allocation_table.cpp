#include "shim/core/allocation_table.h"

namespace gpucap::core {
namespace {
constexpr uint64_t kPage = 4096;
}

bool AllocationTable::grow(Shard& shard) {
  const uint64_t capacity = shard.capacity == 0 ? kFirstCapacity : shard.capacity * 2;
  const uint64_t bytes = (capacity * sizeof(Record) + kPage - 1) / kPage * kPage;
  auto* fresh = static_cast<Record*>(pages_.take(bytes));
  if (fresh == nullptr) return false;
  Shard next;
  next.records = fresh;
  next.capacity = capacity;
  next.shift = 64 - static_cast<uint32_t>(__builtin_ctzll(capacity));
  for (uint64_t i = 0; i < shard.capacity; ++i) {
    const Record& record = shard.records[i];
    if (record.space != Space::kNone)
      fresh[slot_of(next, record.space, record.key, hash(record.space, record.key))] = record;
  }
  if (shard.records != nullptr) pages_.give_back(shard.records, shard.mapped_bytes);
  shard.records = fresh;
  shard.capacity = capacity;
  shard.shift = next.shift;
  shard.mapped_bytes = bytes;
  return true;
}

bool AllocationTable::find(Space space, uint64_t key, Record* record) const {
  const uint64_t h = hash(space, key);
  const Shard& shard = shard_of(h);
  const SpinGuard guard(shard.lock);
  if (shard.count == 0) return false;
  const uint64_t slot = slot_of(shard, space, key, h);
  if (shard.records[slot].space == Space::kNone) return false;
  *record = shard.records[slot];
  return true;
}

bool AllocationTable::update(Space space, uint64_t key, bool (*change)(Record&, void*), void* argument, Record* after) {
  const uint64_t h = hash(space, key);
  Shard& shard = shard_of(h);
  const SpinGuard guard(shard.lock);
  if (shard.count == 0) return false;
  const uint64_t slot = slot_of(shard, space, key, h);
  if (shard.records[slot].space == Space::kNone) return false;
  const bool erase_it = change(shard.records[slot], argument);
  *after = shard.records[slot];
  if (erase_it) erase(shard, slot);
  return true;
}

void AllocationTable::take_if(bool (*matches)(const Record&, void*), void (*taken)(const Record&, void*),
                              void* argument) {
  for (Shard& shard : shards_) {
    const SpinGuard guard(shard.lock);
    for (uint64_t i = 0; i < shard.capacity && shard.count != 0;) {
      const Record record = shard.records[i];
      if (record.space == Space::kNone || !matches(record, argument)) {
        ++i;
        continue;
      }
      erase(shard, i);  // may move another record here: look at the same slot again
      taken(record, argument);
    }
  }
}

void AllocationTable::edit_each(void (*edit)(Record&, void*), void* argument) {
  for (Shard& shard : shards_) {
    const SpinGuard guard(shard.lock);
    for (uint64_t i = 0; i < shard.capacity; ++i)
      if (shard.records[i].space != Space::kNone) edit(shard.records[i], argument);
  }
}

uint64_t AllocationTable::size() const {
  uint64_t n = 0;
  for (const Shard& shard : shards_) {
    const SpinGuard guard(shard.lock);
    n += shard.count;
  }
  return n;
}

uint64_t AllocationTable::bytes_of_memory() const {
  uint64_t n = 0;
  for (const Shard& shard : shards_) {
    const SpinGuard guard(shard.lock);
    n += shard.mapped_bytes;
  }
  return n;
}

}  // namespace gpucap::core
