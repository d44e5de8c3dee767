// Every live allocation: what was charged for it and where. Open addressing on pages of our own, 24 bytes a record,
// sharded so that threads rarely meet; insert, find and take are O(1) whatever lives. Called from every thread of the
// host program.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "shim/core/pages.h"
#include "shim/core/spin_lock.h"

namespace gpucap::core {

// The address spaces of the driver's names: the same number may be a pointer, a handle and a pool at once.
enum class Space : uint8_t { kNone = 0, kPointer, kArray, kMipmap, kVmmHandle, kVmmMapping, kPool, kGraphExec };

struct Record {
  uint64_t key = 0;
  uint64_t bytes = 0;  // charged, or of the mapping; what `kind` means by it
  uint32_t link = 0;   // pool, VMM block or context that it belongs to
  Space space = Space::kNone;
  uint8_t kind = 0;  // gpucap_kind
  uint8_t device = 0;
  uint8_t context = 0;  // the context that the driver frees it with, 0 for none
};
static_assert(sizeof(Record) == 24);

class AllocationTable {
 public:
  constexpr AllocationTable() = default;
  explicit constexpr AllocationTable(PageSource pages) : pages_(pages) {}
  void set_pages(PageSource pages) { pages_ = pages; }  // before the first insert

  // False only when there is no memory for the table; the caller's charge then stands without a record. A record that
  // is already there is replaced (its memory went without our seeing it) and handed out in *replaced, when given, which
  // is left alone otherwise.
  [[nodiscard]] bool insert(const Record& record, Record* replaced = nullptr);
  // Takes the record out.
  [[nodiscard]] bool take(Space space, uint64_t key, Record* record);
  [[nodiscard]] bool find(Space space, uint64_t key, Record* record) const;

  // Lets `change` edit a record in place, under its lock; if it answers true the record is taken out. False if there is
  // none. *after is the record as it then was.
  bool update(Space space, uint64_t key, bool (*change)(Record&, void*), void* argument, Record* after);

  // Takes out every record that `matches` says yes to and hands it to `taken`. Locks one shard at a time; for rare
  // events. Each of the two gets `argument` and must not call the table.
  void take_if(bool (*matches)(const Record&, void*), void (*taken)(const Record&, void*), void* argument);

  // Lets `edit` change what a record says, but not its name, for every one; for rare events. Locks one shard at a time;
  // `edit` gets `argument` and must not call the table.
  void edit_each(void (*edit)(Record&, void*), void* argument);

  [[nodiscard]] uint64_t size() const;
  [[nodiscard]] uint64_t bytes_of_memory() const;

 private:
  static constexpr int kShardBits = 6;
  static constexpr int kShards = 1 << kShardBits;
  static constexpr uint64_t kFirstCapacity = 128;

  struct alignas(64) Shard {
    mutable SpinLock lock;
    Record* records = nullptr;
    uint64_t capacity = 0;  // 2 to the 64 - shift
    uint32_t shift = 0;
    uint64_t count = 0;
    uint64_t mapped_bytes = 0;
  };

  static uint64_t hash(Space space, uint64_t key);
  Shard& shard_of(uint64_t h) { return shards_[h >> (64 - kShardBits)]; }
  const Shard& shard_of(uint64_t h) const { return shards_[h >> (64 - kShardBits)]; }
  static uint64_t home_of(const Shard& shard, uint64_t h) { return h << kShardBits >> shard.shift; }
  static uint64_t slot_of(const Shard& shard, Space space, uint64_t key, uint64_t h);
  static void write(Record& slot, const Record& record);
  __attribute__((cold)) bool grow(Shard& shard);
  static void erase(Shard& shard, uint64_t slot);

  PageSource pages_;
  Shard shards_[kShards];
};

// The two that every allocation passes through are here to be built into their callers.

// Names are pointers and handles, which differ in their middle bits: a multiplication carries those to the top, where
// the shard and the slot are read.
inline uint64_t AllocationTable::hash(Space space, uint64_t key) {
  return (key ^ (static_cast<uint64_t>(space) << 56)) * 0x9E3779B97F4A7C15u;
}

// The slot that holds the key, or the empty one where it would go. The shard is never full.
inline uint64_t AllocationTable::slot_of(const Shard& shard, Space space, uint64_t key, uint64_t h) {
  const uint64_t mask = shard.capacity - 1;
  uint64_t slot = home_of(shard, h);
  while (shard.records[slot].space != Space::kNone &&
         !(shard.records[slot].key == key && shard.records[slot].space == space)) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

[[gnu::always_inline]] inline bool AllocationTable::insert(const Record& record, Record* replaced) {
  const uint64_t h = hash(record.space, record.key);
  Shard& shard = shard_of(h);
  const SpinGuard guard(shard.lock);
  // At most 7/8 full, so that probes stay short and end; one empty slot at least if growing fails.
  if ((shard.count + 1) * 8 > shard.capacity * 7) [[unlikely]] {
    if (!grow(shard) && shard.count + 1 >= shard.capacity) return false;
  }
  Record& slot = shard.records[slot_of(shard, record.space, record.key, h)];
  if (slot.space == Space::kNone) [[likely]] {
    ++shard.count;
  } else if (replaced != nullptr) {
    *replaced = slot;
  }
  write(slot, record);
  return true;
}

// As whole words, put together in registers: a record that was just filled in field by field, and is then copied as a
// whole, makes the processor wait until its bytes are written (a third of linear::Step::end, by samples).
inline void AllocationTable::write(Record& slot, const Record& record) {
  static_assert(offsetof(Record, space) == 20 && offsetof(Record, kind) == 21 && offsetof(Record, device) == 22 &&
                offsetof(Record, context) == 23 && std::endian::native == std::endian::little);
  const uint64_t rest = record.link | uint64_t{static_cast<uint8_t>(record.space)} << 32 | uint64_t{record.kind} << 40 |
                        uint64_t{record.device} << 48 | uint64_t{record.context} << 56;
  slot.key = record.key;
  slot.bytes = record.bytes;
  std::memcpy(reinterpret_cast<unsigned char*>(&slot) + offsetof(Record, link), &rest, sizeof(rest));
}

// Backward shift: what follows in the same run moves up, so no tombstones pile up in a program that runs for weeks.
inline void AllocationTable::erase(Shard& shard, uint64_t slot) {
  const uint64_t mask = shard.capacity - 1;
  uint64_t hole = slot;
  for (uint64_t next = (hole + 1) & mask; shard.records[next].space != Space::kNone; next = (next + 1) & mask) {
    const uint64_t home = home_of(shard, hash(shard.records[next].space, shard.records[next].key));
    if (((next - home) & mask) >= ((next - hole) & mask)) {
      shard.records[hole] = shard.records[next];
      hole = next;
    }
  }
  shard.records[hole] = Record{};
  --shard.count;
}

inline bool AllocationTable::take(Space space, uint64_t key, Record* record) {
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

}  // namespace gpucap::core
