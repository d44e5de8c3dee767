#include "shim/core/allocation_table.h"

namespace gpucap::core {
namespace {
constexpr uint64_t kPage = 4096;
}

uint64_t AllocationTable::hash(Space space, uint64_t key) {
  // Pointers differ in their middle bits; a multiply and a fold spread them over all 64.
  uint64_t h = (key ^ (static_cast<uint64_t>(space) << 56)) * 0x9E3779B97F4A7C15u;
  h ^= h >> 32;
  h *= 0xD6E8FEB86659FD93u;
  return h ^ (h >> 29);
}

// The slot that holds the key, or the empty one where it would go. The shard is never full.
uint64_t AllocationTable::slot_of(const Shard& shard, Space space, uint64_t key, uint64_t h) {
  const uint64_t mask = shard.capacity - 1;
  uint64_t slot = h & mask;
  while (shard.records[slot].space != Space::kNone &&
         !(shard.records[slot].key == key && shard.records[slot].space == space)) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

bool AllocationTable::grow(Shard& shard) {
  const uint64_t capacity = shard.capacity == 0 ? kFirstCapacity : shard.capacity * 2;
  const uint64_t bytes = (capacity * sizeof(Record) + kPage - 1) / kPage * kPage;
  auto* fresh = static_cast<Record*>(pages_.take(bytes));
  if (fresh == nullptr) return false;
  Shard next;
  next.records = fresh;
  next.capacity = capacity;
  for (uint64_t i = 0; i < shard.capacity; ++i) {
    const Record& record = shard.records[i];
    if (record.space != Space::kNone)
      fresh[slot_of(next, record.space, record.key, hash(record.space, record.key))] = record;
  }
  if (shard.records != nullptr) pages_.give_back(shard.records, shard.mapped_bytes);
  shard.records = fresh;
  shard.capacity = capacity;
  shard.mapped_bytes = bytes;
  return true;
}

bool AllocationTable::insert(const Record& record, Record* replaced) {
  const uint64_t h = hash(record.space, record.key);
  Shard& shard = shard_of(h);
  const SpinGuard guard(shard.lock);
  if (replaced != nullptr) *replaced = Record{};
  // At most 7/8 full, so that probes stay short and end; one empty slot at least if growing fails.
  if ((shard.count + 1) * 8 > shard.capacity * 7 && !grow(shard) && shard.count + 1 >= shard.capacity) return false;
  Record& slot = shard.records[slot_of(shard, record.space, record.key, h)];
  if (slot.space == Space::kNone) {
    ++shard.count;
  } else if (replaced != nullptr) {
    *replaced = slot;
  }
  slot = record;
  return true;
}

// Backward shift: what follows in the same run moves up, so no tombstones pile up in a program that runs for weeks.
void AllocationTable::erase(Shard& shard, uint64_t slot) {
  const uint64_t mask = shard.capacity - 1;
  uint64_t hole = slot;
  for (uint64_t next = (hole + 1) & mask; shard.records[next].space != Space::kNone; next = (next + 1) & mask) {
    const uint64_t home = hash(shard.records[next].space, shard.records[next].key) & mask;
    if (((next - home) & mask) >= ((next - hole) & mask)) {
      shard.records[hole] = shard.records[next];
      hole = next;
    }
  }
  shard.records[hole] = Record{};
  --shard.count;
}

bool AllocationTable::take(Space space, uint64_t key, Record* record) {
  const uint64_t h = hash(space, key);
  Shard& shard = shard_of(h);
  const SpinGuard guard(shard.lock);
  if (shard.count == 0) return false;
  const uint64_t slot = slot_of(shard, space, key, h);
  if (shard.records[slot].space == Space::kNone) return false;
  *record = shard.records[slot];
  erase(shard, slot);
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
