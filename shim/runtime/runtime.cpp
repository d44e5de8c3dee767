#include "shim/runtime/runtime.h"

#include <atomic>
#include <cstddef>
#include <cstring>

#include "shim/loader/real_dl.h"
#include "shim/process/log.h"
#include "shim/process/process.h"
#include "shim/process/telemetry.h"
#include "shim/runtime/caller_runtime.h"

#define GPUCAP_EXPORT __attribute__((visibility("default")))

namespace gpucap::runtime {

struct Extent {  // cudaExtent
  size_t width, height, depth;
};

namespace {

enum class Function : uint16_t {
#define GPUCAP_RUNTIME(name, params, args) k_##name,
#include "shim/runtime/runtime_table.inc"
#undef GPUCAP_RUNTIME
  kCount
};

constexpr const char* kNames[] = {
#define GPUCAP_RUNTIME(name, params, args) #name,
#include "shim/runtime/runtime_table.inc"
#undef GPUCAP_RUNTIME
};

constexpr int kInitializationError = 3;  // cudaErrorInitializationError: what a runtime answers without a driver

uint16_t first_number = 0;

// Where a call from this place goes. The answer is the same every time: a place in memory belongs to one object, and
// the runtime that it names is never closed once found. Slots are overwritten freely; a reader takes address and target
// as one pair.
struct Remembered {
  std::atomic<uint32_t> version{0};
  std::atomic<const void*> caller{nullptr};
  std::atomic<void*> target{nullptr};
};
constexpr int kRemembered = 256;
Remembered remembered[kRemembered];

void* target_of(const void* caller, Function function) {
  const auto place = reinterpret_cast<uintptr_t>(caller) + static_cast<uintptr_t>(function) * 0x9E3779B1u;
  Remembered& slot = remembered[(place * 0x9E3779B97F4A7C15u) >> 56];
  const void* const key = reinterpret_cast<const void*>(place);
  const uint32_t before = slot.version.load(std::memory_order_acquire);
  if ((before & 1) == 0 && slot.caller.load(std::memory_order_relaxed) == key) {
    void* target = slot.target.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (slot.version.load(std::memory_order_relaxed) == before) return target;
  }
  void* target = find_for_caller(caller, kNames[static_cast<int>(function)]);
  uint32_t even = before & ~1u;
  if (target != nullptr && slot.version.compare_exchange_strong(even, even + 1, std::memory_order_acquire)) {
    slot.caller.store(key, std::memory_order_relaxed);
    slot.target.store(target, std::memory_order_relaxed);
    slot.version.store(even + 2, std::memory_order_release);
  }
  return target;
}

// The innermost runtime function is the one to name; restored, not cleared, since a runtime may call its own exports.
class OriginMark {
 public:
  explicit OriginMark(Function function) : before_(thread_words.origin) {
    if (first_number != 0) thread_words.origin = static_cast<uint16_t>(first_number + static_cast<uint16_t>(function));
  }
  ~OriginMark() { thread_words.origin = before_; }
  OriginMark(const OriginMark&) = delete;
  OriginMark& operator=(const OriginMark&) = delete;

 private:
  uint16_t before_;
};

// A program that was linked with a runtime asks for its functions by version, and the version is the runtime's soname:
// that says which runtime is meant, even when the call is the caller's last act and leaves no return address. A runtime
// under another file name (wheels rename it) is found by the caller.
void* target_in(std::atomic<void*>& known, const char* soname, Function function, const void* caller) {
  void* target = known.load(std::memory_order_relaxed);
  if (target != nullptr) return target;
  target = find_in_runtime(soname, kNames[static_cast<int>(function)]);
  if (target == nullptr) return target_of(caller, function);
  known.store(target, std::memory_order_relaxed);  // every thread finds the same
  return target;
}

template <typename... Rest>
const void* first_of(const void* first, Rest...) {
  return first;
}

// An allocation that the driver hooks did not see: this runtime reached the driver past us. Said once, since the cap
// does not hold there; the memory itself is found by the next look at NVML. An allocation of nothing reaches no driver,
// and gives null.
void miss(Function function, const void* out) {
  static std::atomic<bool> said{false};
  if (out == nullptr || *static_cast<void* const*>(out) == nullptr || Process::get() == nullptr || said.exchange(true))
    return;
  log_line(LogLevel::kWarn,
           "%s went to the driver past gpucap: this program's runtime is not covered, and what it takes is counted but "
           "not refused",
           kNames[static_cast<int>(function)]);
}

}  // namespace

#define GPUCAP_FORWARD(name, params, args, target)                                                             \
  const auto real = reinterpret_cast<int(*) params>(target);                                                   \
  if (real == nullptr) return kInitializationError;                                                            \
  const OriginMark mark(Function::k_##name);                                                                   \
  const uint32_t calls_before = thread_words.charging_calls;                                                   \
  const int result = real args;                                                                                \
  if (Function::k_##name < Function::k_cudaFree && result == 0 && thread_words.charging_calls == calls_before) \
    miss(Function::k_##name, first_of args);                                                                   \
  return result;

// One body a runtime that there is or was, exported under that runtime's version: see shim/exports.map.
#define GPUCAP_VERSIONED(name, params, args, tag, soname)                                                         \
  GPUCAP_EXPORT int gpucap_##name##_##tag params {                                                                \
    static std::atomic<void*> known{nullptr};                                                                     \
    GPUCAP_FORWARD(name, params, args, target_in(known, soname, Function::k_##name, __builtin_return_address(0))) \
  }                                                                                                               \
  __asm__(".symver gpucap_" #name "_" #tag ", " #name "@" soname);

extern "C" {
#define GPUCAP_RUNTIME(name, params, args)                                                         \
  GPUCAP_EXPORT int name params {                                                                  \
    GPUCAP_FORWARD(name, params, args, target_of(__builtin_return_address(0), Function::k_##name)) \
  }                                                                                                \
  __asm__(".symver " #name ", " #name "@GPUCAP");                                                  \
  GPUCAP_VERSIONED(name, params, args, 10_0, "libcudart.so.10.0")                                  \
  GPUCAP_VERSIONED(name, params, args, 10_1, "libcudart.so.10.1")                                  \
  GPUCAP_VERSIONED(name, params, args, 10_2, "libcudart.so.10.2")                                  \
  GPUCAP_VERSIONED(name, params, args, 11_0, "libcudart.so.11.0")                                  \
  GPUCAP_VERSIONED(name, params, args, 12, "libcudart.so.12")                                      \
  GPUCAP_VERSIONED(name, params, args, 13, "libcudart.so.13")                                      \
  GPUCAP_VERSIONED(name, params, args, 14, "libcudart.so.14")
#include "shim/runtime/runtime_table.inc"
#undef GPUCAP_RUNTIME
}
#undef GPUCAP_VERSIONED
#undef GPUCAP_FORWARD

const char* const* names(uint32_t* count) {
  *count = static_cast<uint32_t>(Function::kCount);
  return kNames;
}

void set_first_number(uint16_t number) { first_number = number; }

bool has(const char* name) {
  for (const char* ours : kNames)
    if (strcmp(ours, name) == 0) return true;
  return false;
}

bool is_ours(const void* address) {
  const void* const object = loader::object_of(address);
  return object != nullptr && object == loader::object_of(reinterpret_cast<const void*>(&is_ours));
}

}  // namespace gpucap::runtime
