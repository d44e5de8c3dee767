// The state of the fake driver in one process, and the door through which every exported function enters: failures and
// slowness on demand, the call log, "not initialised", "no context", and the one lock. Everything else here is called
// under that lock. What memory costs is charged through take() and give(), nowhere else.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/fake_cuda/api.h"
#include "tests/fake_cuda/backing.h"
#include "tests/fake_cuda/fail.h"
#include "tests/fake_cuda/sizes.h"
#include "tests/fake_cuda/truth.h"

namespace fake {

struct Context;
struct Pool;
struct Stream;

enum class RangeKind { kLinear, kManaged, kHost, kPool, kMapping, kGraph, kImported };

// One allocation that has an address.
struct Range {
  RangeKind kind = RangeKind::kLinear;
  uint64_t bytes = 0;    // as asked; what pointer queries show
  uint64_t charged = 0;  // what it takes by itself; 0 for a share of a block or a pool
  uint64_t mapped = 0;   // bytes of address space of its own
  int device = 0;        // ordinal that the process sees
  Context* context = nullptr;
  Pool* pool = nullptr;
  Extent extent;            // of its own memory
  bool low = false;         // made by the oldest API, below 4 GiB
  bool registered = false;  // host memory that the program brought
  uint64_t owner = 0;       // of a mapping or a graph's memory: the object behind it
};

struct Device {
  int physical = 0;
  std::unique_ptr<Context> primary;
  unsigned primary_count = 0;
  unsigned primary_flags = 0;
  Pool* default_pool = nullptr;
  Pool* current_pool = nullptr;
  uint64_t graph_cached_bytes = 0;  // taken by graphs that are gone, kept until cuDeviceGraphMemTrim
  uint64_t graph_used_bytes = 0;
  uint64_t graph_used_high_bytes = 0;
  uint64_t graph_reserved_bytes = 0;
  uint64_t graph_reserved_high_bytes = 0;
};

struct Driver {
  std::mutex lock;
  bool initialised = false;
  pid_t pid = 0;  // of the process that called cuInit
  uint64_t memory_bytes = 0;
  Truth truth;
  Backing backing;
  std::vector<std::unique_ptr<Device>> devices;
  std::set<Context*> contexts;  // living ones; the objects themselves stay, so that stale handles can be told
  std::set<Pool*> pools;
  std::set<Stream*> streams;
  std::map<uint64_t, Range> ranges;  // by base address

  Device* device(CUdevice ordinal) {
    return ordinal >= 0 && static_cast<size_t>(ordinal) < devices.size() ? devices[static_cast<size_t>(ordinal)].get()
                                                                         : nullptr;
  }
  [[nodiscard]] bool take(int ordinal, uint64_t bytes) {
    return truth.take(device(ordinal)->physical, bytes, memory_bytes);
  }
  void give(int ordinal, uint64_t bytes) { truth.give(device(ordinal)->physical, bytes); }
  // The allocation that `address` lies in, or nullptr; *base is where it starts.
  Range* find_range(uint64_t address, uint64_t* base);
};

// Never destroyed: calls may come from exit handlers.
Driver& driver();

// CUDA_VISIBLE_DEVICES applied: the physical card of each ordinal.
std::vector<int> visible_devices();

enum class Need { kNothing, kInitialised, kContext };

// True, and every capture that is going on is spoilt, if the calling thread may not make unsafe calls now. Of all
// unsafe calls these are imitated: cuMemAlloc, cuCtxSynchronize, cuMemPoolGetAttribute, cuMemPoolTrimTo.
bool spoils_captures(Driver& driver);

// True if `need` is met; otherwise *result says why not. Called under the lock.
bool is_met(Need need, CUresult* result);
// False in a process that never called cuInit, and in the forked child of one that did.
bool may_be_used();
bool is_forked_child();

template <class Body>
CUresult enter(const char* name, Need need, Body body) {
  int injected = 0;
  CUresult result = CUDA_SUCCESS;
  wait_on_demand(name);
  if (fails_on_demand(name, &injected)) {
    result = static_cast<CUresult>(injected);
  } else if (need != Need::kNothing && !may_be_used()) {  // before the lock: a fork may have left it held
    result = CUDA_ERROR_NOT_INITIALIZED;
  } else {
    const std::lock_guard<std::mutex> guard(driver().lock);
    if (is_met(need, &result)) result = body(driver());
  }
  log_call(name, result);
  return result;
}

}  // namespace fake
