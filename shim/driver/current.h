// Which device and which context a call is about. Asking the driver costs some 15 ns; everything else is remembered.
// Any thread.
#pragma once

#include "shim/driver/real_driver.h"
#include "shim/process/process.h"

namespace gpucap::driver {

struct Current {
  Device* device = nullptr;  // nullptr: no current context, or gpucap does not know its device
  uint8_t context = 0;       // number of the context, for Record::context; 0 where there are too many to tell apart
};

// Changes whenever a context or a stream goes, or a device's pool changes: what threads remember about them then ends.
extern std::atomic<uint64_t> generation;
inline void forget_what_threads_remember() { generation.fetch_add(1); }

// The calling thread's current context.
Current current(Process& process);

// False for 0, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD, which every context has.
inline bool is_of_one_device(CUstream stream) {
  return stream != nullptr && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
}
// The device of a stream; 0, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD belong to the current context.
Device* device_of_stream(Process& process, CUstream stream);

// The number of a context, which is made up at first sight.
uint8_t number_of_context(CUcontext context, CUdevice device);
// The context is about to go: its number stays taken, but no longer belongs to that address, where a new context would
// get another. 0 if it has none. Then either restore_context (the driver refused) or forget_number (it is gone).
uint8_t set_context_apart(CUcontext context);
void restore_context(CUcontext context, uint8_t number);
void forget_number(uint8_t number);

}  // namespace gpucap::driver
