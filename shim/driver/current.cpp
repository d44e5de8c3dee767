#include "shim/driver/current.h"

#include "shim/core/spin_lock.h"

namespace gpucap::driver {

std::atomic<uint64_t> generation{1};

namespace {

struct Known {
  CUcontext context;
  CUdevice device;
};
constexpr int kMost = 256;  // number 0 is "none"
// Stands where a context was that is about to go. No context lies at this address.
const auto kApart = reinterpret_cast<CUcontext>(uintptr_t{1});
Known known[kMost];
core::SpinLock lock;
struct Remembered {
  CUcontext context;
  uint64_t generation;
  int16_t device;
  uint8_t number;
};
constinit thread_local Remembered remembered __attribute__((tls_model("initial-exec"))) = {};

uint8_t find_or_add(CUcontext context, CUdevice device) {
  const core::SpinGuard guard(lock);
  int free_number = 0;
  for (int i = 1; i < kMost; ++i) {
    if (known[i].context == context) return static_cast<uint8_t>(i);
    if (known[i].context == nullptr && free_number == 0) free_number = i;
  }
  if (free_number != 0) known[free_number] = {context, device};
  return static_cast<uint8_t>(free_number);
}

bool find_device(CUcontext context, CUdevice* device) {
  const core::SpinGuard guard(lock);
  for (int i = 1; i < kMost; ++i) {
    if (known[i].context != context) continue;
    *device = known[i].device;
    return true;
  }
  return false;
}

}  // namespace

uint8_t number_of_context(CUcontext context, CUdevice device) { return find_or_add(context, device); }

uint8_t set_context_apart(CUcontext context) {
  const core::SpinGuard guard(lock);
  uint8_t number = 0;
  for (int i = 1; i < kMost && context != nullptr; ++i) {
    if (known[i].context != context) continue;
    known[i].context = kApart;
    number = static_cast<uint8_t>(i);
  }
  forget_what_threads_remember();
  return number;
}

void restore_context(CUcontext context, uint8_t number) {
  const core::SpinGuard guard(lock);
  if (number != 0) known[number].context = context;
}

void forget_number(uint8_t number) {
  const core::SpinGuard guard(lock);
  if (number != 0) known[number] = {};
}

[[gnu::hot]] Current current(Process& process) {
  CUcontext context = nullptr;
  if (real().cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return {};
  Remembered& memory = remembered;
  const uint64_t now = generation.load(std::memory_order_acquire);
  if (memory.context != context || memory.generation != now) {
    CUdevice device = 0;
    if (real().cuCtxGetDevice(&device) != CUDA_SUCCESS) return {};
    memory = {context, now, static_cast<int16_t>(device), find_or_add(context, device)};
  }
  return {process.device(memory.device), memory.number};
}

Device* device_of_stream(Process& process, CUstream stream) {
  if (process.device_count() == 1) return process.device(0);
  if (is_of_one_device(stream)) {
    CUcontext context = nullptr;
    if (real().cuStreamGetCtx(stream, &context) != CUDA_SUCCESS) return nullptr;
    CUdevice device = 0;
    if (find_device(context, &device)) return process.device(device);
    if (real().cuCtxPushCurrent_v2(context) != CUDA_SUCCESS) return nullptr;
    const CUresult result = real().cuCtxGetDevice(&device);
    CUcontext popped = nullptr;
    real().cuCtxPopCurrent_v2(&popped);
    if (result != CUDA_SUCCESS) return nullptr;
    number_of_context(context, device);
    return process.device(device);
  }
  return current(process).device;
}

}  // namespace gpucap::driver
