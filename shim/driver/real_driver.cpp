#include "shim/driver/real_driver.h"

#include <sched.h>

#include <cstring>

#include "shim/driver/exports.h"
#include "shim/loader/real_dl.h"

namespace gpucap::driver {
namespace {

template <typename Function>
struct Missing;
template <typename... Arguments>
struct Missing<CUresult(CUDAAPI*)(Arguments...)> {
  static CUresult CUDAAPI call(Arguments...) { return CUDA_ERROR_NOT_FOUND; }
};

constexpr int kApiCount = static_cast<int>(Api::kCount);

constexpr const char* kNames[] = {
    "none",
#define GPUCAP_HOOK(name, params, args, role, verb) #name,
#include "shim/driver/hook_table.inc"
#undef GPUCAP_HOOK
};
static_assert(sizeof(kNames) / sizeof(kNames[0]) == kApiCount);

void* const kHooks[] = {
    nullptr,
#define GPUCAP_HOOK(name, params, args, role, verb) reinterpret_cast<void*>(&::name),
#include "shim/driver/hook_table.inc"
#undef GPUCAP_HOOK
};

// Real addresses by number, and a small open-addressing index from address to number. Filled before real_ready is
// stored.
const void* real_addresses[kApiCount];
constexpr uint32_t kIndexSize = 1024;
static_assert(kIndexSize > 4 * kApiCount);
uint16_t index_of_address[kIndexSize];

uint32_t home_of(const void* address) {
  return static_cast<uint32_t>((reinterpret_cast<uintptr_t>(address) * 0x9E3779B97F4A7C15u) >> 40) % kIndexSize;
}

std::atomic<uint32_t> loading{0};

template <typename Function>
void resolve(void* library, const char* name, Function* function, Api api) {
  void* address = library == nullptr ? nullptr : loader::real_dlsym()(library, name);
  *function = address == nullptr ? &Missing<Function>::call : reinterpret_cast<Function>(address);
  if (api == Api::kNone || address == nullptr) return;
  real_addresses[static_cast<int>(api)] = address;
  uint32_t slot = home_of(address);
  while (index_of_address[slot] != 0) {
    // Two names for one function (as cuMemHostRegister and its _v2 may be): the first row stands for both.
    if (real_addresses[index_of_address[slot]] == address) return;
    slot = (slot + 1) % kIndexSize;
  }
  index_of_address[slot] = static_cast<uint16_t>(api);
}

}  // namespace

namespace detail {

constinit std::atomic<bool> real_ready{false};
constinit RealDriver real_functions{};

void load_real_driver() {
  uint32_t nobody = 0;
  if (!loading.compare_exchange_strong(nobody, 1)) {
    while (!real_ready.load(std::memory_order_acquire)) sched_yield();
    return;
  }
  void* library = loader::load_library("libcuda.so.1");
#define GPUCAP_HOOK(name, params, args, role, verb) resolve(library, #name, &real_functions.name, Api::k_##name);
#include "shim/driver/hook_table.inc"
#undef GPUCAP_HOOK
#define GPUCAP_CALL(name, params) resolve(library, #name, &real_functions.name, Api::kNone);
#include "shim/driver/driver_calls.inc"
#undef GPUCAP_CALL
  real_ready.store(true, std::memory_order_release);
}

}  // namespace detail

bool has(Api api) {
  real();
  return real_addresses[static_cast<int>(api)] != nullptr;
}

const char* const* all_names() { return kNames; }

Api find_by_name(const char* name) {
  for (int i = 1; i < kApiCount; ++i)
    if (strcmp(kNames[i], name) == 0) return static_cast<Api>(i);
  return Api::kNone;
}

namespace {

// Finds the real functions if libcuda is in the process; does not bring it in.
bool is_loaded() {
  if (detail::real_ready.load(std::memory_order_acquire)) return true;
  if (loader::handle_if_loaded("libcuda.so.1") == nullptr) return false;
  detail::load_real_driver();
  return true;
}

}  // namespace

void* hook_for_real_address(const void* address) {
  if (!is_loaded()) return nullptr;
  for (uint32_t slot = home_of(address); index_of_address[slot] != 0; slot = (slot + 1) % kIndexSize)
    if (real_addresses[index_of_address[slot]] == address) return kHooks[index_of_address[slot]];
  return nullptr;
}

void* hook_for_name(const char* name) {
  const auto number = static_cast<int>(find_by_name(name));
  return is_loaded() && real_addresses[number] != nullptr ? kHooks[number] : nullptr;
}

}  // namespace gpucap::driver
