// Streams and events. Work in the fake is done when the call returns, so waiting means only: pools give back what their
// release threshold does not keep. Under the driver's lock.
#pragma once

#include "tests/fake_cuda/context.h"

namespace fake {

struct Graph;

struct Stream {
  Context* context = nullptr;
  unsigned flags = 0;
  int priority = 0;
  uint64_t id = 0;
  bool is_default = false;
  Graph* capture = nullptr;
  bool capture_spoilt = false;  // by a call that is not allowed meanwhile
  bool owns_capture = false;    // false when capturing into a graph of the program's
};

Stream* make_default_stream(Driver& driver, Context* context);
void destroy_all_streams(Driver& driver, Context* context);
void destroy_all_events(Context* context);
// The stream behind a handle, also 0, legacy and per-thread ones (of the current context). nullptr if there is none.
Stream* find_stream(Driver& driver, CUstream handle, bool per_thread);
// What every synchronise does on that device.
void synchronise(Driver& driver, int device);

}  // namespace fake
