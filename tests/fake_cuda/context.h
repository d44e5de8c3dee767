// Contexts: what each one holds, which is current on a thread, and what its end frees. Under the driver's lock, except
// for the per-thread stack itself.
#pragma once

#include <set>

#include "tests/fake_cuda/driver.h"
#include "tests/fake_cuda/small_blocks.h"

namespace fake {

struct Array;
struct Module;
struct Event;
struct Stream;

struct Context {
  int device = 0;
  bool primary = false;
  unsigned usage = 1;  // cuCtxAttach
  unsigned flags = 0;
  uint64_t id = 0;
  SmallBlocks small_linear;
  SmallBlocks small_low;  // below 4 GiB, for the oldest API
  SmallBlocks small_arrays;
  std::set<Array*> arrays;
  std::set<Module*> modules;
  std::set<Event*> events;
  Stream* legacy_stream = nullptr;
  Stream* thread_stream = nullptr;
  std::map<uint64_t, Extent> blocks;  // memory of the shared 2 MiB blocks by address, all kinds
  uint64_t stack_bytes = kDefaultStackBytes;
  uint64_t stack_charged = 0;
  uint64_t local_charged = 0;
  std::map<int, size_t> limits;
};

Context* current_context();
void set_current(Context* context);
// False if the stack is full.
bool push_current(Context* context);
Context* pop_current();

// nullptr if the card is too full.
Context* make_context(Driver& driver, int device, unsigned flags);
bool activate(Driver& driver, Context* context);
// Frees everything that was allocated in it.
void end_context(Driver& driver, Context* context);

inline Context* as_context(CUcontext handle) { return reinterpret_cast<Context*>(handle); }
inline CUcontext as_handle(Context* context) { return reinterpret_cast<CUcontext>(context); }

}  // namespace fake
