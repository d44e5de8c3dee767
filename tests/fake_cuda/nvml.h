// The fake libnvidia-ml.so.1: the ABI that it speaks (our own declarations; NVML's header is in no package that the
// build needs) and the door of every exported function: failures on demand, the call log, "not initialised", the lock.
// Sees all cards whatever CUDA_VISIBLE_DEVICES says, and reads the shared file of figures only.
#pragma once

#include <cstdint>
#include <mutex>

#include "tests/fake_cuda/fail.h"
#include "tests/fake_cuda/truth.h"

#define FAKE_NVML extern "C" __attribute__((visibility("default")))

namespace fake {

enum NvmlReturn : int {
  kNvmlSuccess = 0,
  kNvmlUninitialised = 1,
  kNvmlInvalidArgument = 2,
  kNvmlNotSupported = 3,
  kNvmlNotFound = 6,
  kNvmlInsufficientSize = 7,
  kNvmlDriverNotLoaded = 9,
  kNvmlArgumentVersionMismatch = 25,
  kNvmlUnknown = 999
};

struct NvmlCard {
  int physical;
};

struct Nvml {
  std::mutex lock;
  unsigned users = 0;  // nvmlInit and nvmlShutdown count
  Truth truth;
  NvmlCard cards[kMostDevices];
};

Nvml& nvml();
bool is_card(const NvmlCard* card);

template <class Body>
NvmlReturn enter_nvml(const char* name, bool before_init_too, Body body) {
  int injected = 0;
  NvmlReturn result = kNvmlUninitialised;
  if (fails_on_demand(name, &injected)) {
    result = static_cast<NvmlReturn>(injected);
  } else {
    const std::lock_guard<std::mutex> guard(nvml().lock);
    if (before_init_too || nvml().users > 0) result = body(nvml());
  }
  log_call(name, result);
  return result;
}

// For functions of one card.
template <class Body>
NvmlReturn with_card(const char* name, const NvmlCard* card, Body body) {
  return enter_nvml(name, false,
                    [&](Nvml& state) { return is_card(card) ? body(state, *card) : kNvmlInvalidArgument; });
}

// Text into a caller's buffer, which must be long enough for it.
NvmlReturn copy_text(char* out, unsigned length, const char* text);

}  // namespace fake
