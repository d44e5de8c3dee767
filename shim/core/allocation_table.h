// Every live allocation: what was charged for it and where. Open addressing on pages of our own, 24 bytes a record,
// sharded so that threads rarely meet; insert, find and take are O(1) whatever lives. Called from every thread of the
// host program.
#pragma once

#include <atomic>
#include <cstdint>

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
  // is already there is replaced (its memory went without our seeing it) and handed out in *replaced, when given.
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
  static constexpr int kShards = 64;
  static constexpr uint64_t kFirstCapacity = 128;

  struct alignas(64) Shard {
    mutable SpinLock lock;
    Record* records = nullptr;
    uint64_t capacity = 0;  // a power of two
    uint64_t count = 0;
    uint64_t mapped_bytes = 0;
  };

  static uint64_t hash(Space space, uint64_t key);
  Shard& shard_of(uint64_t h) { return shards_[h >> 58]; }
  const Shard& shard_of(uint64_t h) const { return shards_[h >> 58]; }
  static uint64_t slot_of(const Shard& shard, Space space, uint64_t key, uint64_t h);
  bool grow(Shard& shard);
  static void erase(Shard& shard, uint64_t slot);

  PageSource pages_;
  Shard shards_[kShards];
};

}  // namespace gpucap::core
