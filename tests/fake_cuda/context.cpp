// Life and death of contexts. See context.h; the exported functions are in context_api.cpp.
#include "tests/fake_cuda/context.h"

#include "tests/fake_cuda/array.h"
#include "tests/fake_cuda/graph.h"
#include "tests/fake_cuda/linear.h"
#include "tests/fake_cuda/module.h"
#include "tests/fake_cuda/pool.h"
#include "tests/fake_cuda/stream.h"

namespace fake {
namespace {

// Plain pointers in a plain array: no destructor runs at thread exit, when calls may still come.
constexpr int kDeepest = 64;
thread_local Context* stack[kDeepest];
thread_local int depth = 0;

uint64_t next_id = 0;

}  // namespace

Context* current_context() { return depth == 0 ? nullptr : stack[depth - 1]; }

void set_current(Context* context) {
  if (depth == 0) depth = 1;
  stack[depth - 1] = context;
  if (context == nullptr) --depth;
}

bool push_current(Context* context) {
  if (depth == kDeepest) return false;
  stack[depth++] = context;
  return true;
}

Context* pop_current() { return depth == 0 ? nullptr : stack[--depth]; }

bool activate(Driver& driver, Context* context) {
  if (!driver.take(context->device, kContextBytes)) return false;
  context->id = ++next_id;
  context->legacy_stream = make_default_stream(driver, context);
  context->thread_stream = make_default_stream(driver, context);
  driver.contexts.insert(context);
  return true;
}

Context* make_context(Driver& driver, int device, unsigned flags) {
  auto context = std::make_unique<Context>();
  context->device = device;
  context->flags = flags;
  return activate(driver, context.get()) ? context.release() : nullptr;
}

void end_context(Driver& driver, Context* context) {
  driver.contexts.erase(context);
  free_all_linear(driver, context);
  free_all_arrays(driver, context);
  unload_all_modules(driver, context);
  destroy_all_streams(driver, context);
  destroy_all_events(context);
  if (context->primary) {
    drop_pools(driver, context->device);
    drop_graph_memory(driver, context->device);
  }
  driver.give(context->device, context->stack_charged + context->local_charged + kContextBytes);
  context->stack_bytes = kDefaultStackBytes;
  context->stack_charged = context->local_charged = 0;
  context->limits.clear();
}

}  // namespace fake
