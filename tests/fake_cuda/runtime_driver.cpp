// See runtime_driver.h.
#include "tests/fake_cuda/runtime_driver.h"

#include <dlfcn.h>

#include <cstring>
#include <mutex>

namespace fake_runtime {
namespace {

constexpr int kInsufficientDriver = 35;
constexpr int kMostDevices = 64;

std::mutex lock;
Imports imports;
bool resolved = false;
CUcontext primaries[kMostDevices];

template <class Function>
void assign(Function* to, void* address) {
  static_assert(sizeof(*to) == sizeof(address));
  std::memcpy(to, &address, sizeof(address));
}

bool resolve() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  void* const symbol = library == nullptr ? nullptr : ::dlsym(library, "cuGetProcAddress_v2");
  if (symbol == nullptr) return false;
  decltype(&::cuGetProcAddress_v2) get = nullptr;
  assign(&get, symbol);
  CUdriverProcAddressQueryResult status{};
  void* address = nullptr;
  // Again by itself, in both ages, as the real runtime does.
  for (const int version : {11030, 12000}) {
    if (get("cuGetProcAddress", &address, version, 1, &status) != CUDA_SUCCESS) return false;
  }
  assign(&get, address);
#define FAKE_RESOLVE(field, name, version, flags, spelling)                       \
  if (get(name, &address, version, flags, &status) != CUDA_SUCCESS) return false; \
  assign(&imports.field, address);
  FAKE_RUNTIME_IMPORTS(FAKE_RESOLVE)
#undef FAKE_RESOLVE
  return true;
}

}  // namespace

int& thread_device() {
  static thread_local int device = 0;
  return device;
}

int& thread_last_error() {
  static thread_local int error = 0;
  return error;
}

int finish(int error) {
  if (error != 0) thread_last_error() = error;
  return error;
}

const Imports* driver(int* error) {
  const std::lock_guard<std::mutex> guard(lock);
  if (!resolved && !(resolved = resolve())) {
    *error = kInsufficientDriver;
    return nullptr;
  }
  *error = imports.init(0);
  return *error == 0 ? &imports : nullptr;
}

const Imports* driver_in_context(int* error) {
  const Imports* const found = driver(error);
  if (found == nullptr) return nullptr;
  CUcontext current = nullptr;
  *error = found->get_current(&current);
  // A context that the program made current by itself is used as it is.
  if (*error == 0 && current == nullptr) *error = make_primary_current(*found, thread_device());
  return *error == 0 ? found : nullptr;
}

int make_primary_current(const Imports& found, int device) {
  const std::lock_guard<std::mutex> guard(lock);
  if (device < 0 || device >= kMostDevices) return CUDA_ERROR_INVALID_DEVICE;
  CUcontext& primary = primaries[device];  // one reference a process and device
  const int error = primary != nullptr ? 0 : found.retain(&primary, device);
  return error != 0 ? error : found.set_current(primary);
}

void forget_primary(int device) {
  const std::lock_guard<std::mutex> guard(lock);
  primaries[device] = nullptr;
}

}  // namespace fake_runtime
