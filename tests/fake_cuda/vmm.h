// Virtual memory management: physical memory behind handles, address reservations, and the mappings that join them.
// Memory lives until every handle on it is released and every mapping of it is gone. Belongs to no context. Under the
// driver's lock.
#pragma once

#include "tests/fake_cuda/driver.h"

namespace fake {

struct Physical {
  uint64_t id = 0;
  uint64_t bytes = 0;
  CUmemAllocationProp properties{};
  int device = -1;        // -1: host memory, which takes nothing of a card
  bool imported = false;  // another process pays
  bool shareable = false;
  Extent extent;
  uint64_t uses = 0;  // references through handles + mappings
};

struct Handle {
  Physical* physical = nullptr;
  uint64_t references = 0;
  uint64_t mappings = 0;
};

struct VmmState {
  std::set<Handle*> handles;
  std::set<Physical*> physicals;
  std::map<uint64_t, uint64_t> reservations;  // base -> bytes
};
VmmState& vmm();

Handle* make_handle(Physical* physical);
// Takes one use of the handle away, and deletes what nobody uses any more.
void drop_reference(Driver& driver, Handle* handle);
void drop_mapping(Driver& driver, Handle* handle);

inline Handle* as_memory(CUmemGenericAllocationHandle handle) { return reinterpret_cast<Handle*>(handle); }
inline CUmemGenericAllocationHandle as_number(Handle* handle) {
  return reinterpret_cast<CUmemGenericAllocationHandle>(handle);
}

}  // namespace fake
