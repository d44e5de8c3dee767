// Life of the fake NVML, and what it says about the system.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "tests/fake_cuda/cards.h"
#include "tests/fake_cuda/nvml.h"

namespace fake {
namespace {

NvmlReturn initialise(Nvml& state) {
  const char* const fail = std::getenv("FAKE_NVML_FAIL_INIT");
  if (fail != nullptr && std::strcmp(fail, "1") == 0) return kNvmlDriverNotLoaded;
  if (!state.truth.open()) return kNvmlUnknown;
  for (int i = 0; i < kMostDevices; ++i) state.cards[i].physical = i;
  ++state.users;
  return kNvmlSuccess;
}

NvmlReturn cuda_version(int* version) {
  if (version == nullptr) return kNvmlInvalidArgument;
  *version = 13000;
  return kNvmlSuccess;
}

NvmlReturn count(unsigned* out) {
  if (out == nullptr) return kNvmlInvalidArgument;
  *out = static_cast<unsigned>(device_count());
  return kNvmlSuccess;
}

NvmlReturn by_index(Nvml& state, unsigned index, NvmlCard** out) {
  if (out == nullptr || index >= static_cast<unsigned>(device_count())) return kNvmlInvalidArgument;
  *out = &state.cards[index];
  return kNvmlSuccess;
}

NvmlReturn found(Nvml& state, int physical, NvmlCard** out) {
  if (out == nullptr) return kNvmlInvalidArgument;
  if (physical < 0) return kNvmlNotFound;
  *out = &state.cards[physical];
  return kNvmlSuccess;
}

}  // namespace

// Never destroyed: calls may come from exit handlers.
Nvml& nvml() {
  static Nvml& the = *new Nvml;
  return the;
}

bool is_card(const NvmlCard* card) {
  for (const NvmlCard& known : nvml().cards) {
    if (card == &known) return true;
  }
  return false;
}

NvmlReturn copy_text(char* out, unsigned length, const char* text) {
  if (out == nullptr) return kNvmlInvalidArgument;
  if (std::strlen(text) >= length) return kNvmlInsufficientSize;
  std::strcpy(out, text);
  return kNvmlSuccess;
}

}  // namespace fake

using namespace fake;

FAKE_NVML int nvmlInit() { return enter_nvml("nvmlInit", true, initialise); }
FAKE_NVML int nvmlInit_v2() { return enter_nvml("nvmlInit_v2", true, initialise); }
FAKE_NVML int nvmlInitWithFlags(unsigned) { return enter_nvml("nvmlInitWithFlags", true, initialise); }
FAKE_NVML int nvmlShutdown() {
  return enter_nvml("nvmlShutdown", false, [](Nvml& state) {
    --state.users;
    return kNvmlSuccess;
  });
}
FAKE_NVML const char* nvmlErrorString(int code) {
  switch (code) {
    case kNvmlSuccess:
      return "Success";
    case kNvmlUninitialised:
      return "Uninitialized";
    case kNvmlInvalidArgument:
      return "Invalid Argument";
    case kNvmlNotSupported:
      return "Not Supported";
    case kNvmlNotFound:
      return "Not Found";
    case kNvmlInsufficientSize:
      return "Insufficient Size";
    case kNvmlDriverNotLoaded:
      return "Driver Not Loaded";
    case kNvmlArgumentVersionMismatch:
      return "Argument version mismatch";
    default:
      return "Unknown Error";
  }
}
FAKE_NVML int nvmlSystemGetDriverVersion(char* out, unsigned length) {
  return enter_nvml("nvmlSystemGetDriverVersion", false, [&](Nvml&) { return copy_text(out, length, "580.00.fake"); });
}
FAKE_NVML int nvmlSystemGetNVMLVersion(char* out, unsigned length) {
  return enter_nvml("nvmlSystemGetNVMLVersion", false, [&](Nvml&) { return copy_text(out, length, "13.580.00.fake"); });
}
FAKE_NVML int nvmlSystemGetCudaDriverVersion(int* version) {
  return enter_nvml("nvmlSystemGetCudaDriverVersion", false, [&](Nvml&) { return cuda_version(version); });
}
FAKE_NVML int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return enter_nvml("nvmlSystemGetCudaDriverVersion_v2", false, [&](Nvml&) { return cuda_version(version); });
}
FAKE_NVML int nvmlSystemGetProcessName(unsigned pid, char* out, unsigned length) {
  return enter_nvml("nvmlSystemGetProcessName", false, [&](Nvml&) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
    std::string name;
    if (!std::getline(file, name, '\0')) return kNvmlNotFound;
    return copy_text(out, length, name.c_str());
  });
}
FAKE_NVML int nvmlDeviceGetCount(unsigned* out) {
  return enter_nvml("nvmlDeviceGetCount", false, [&](Nvml&) { return count(out); });
}
FAKE_NVML int nvmlDeviceGetCount_v2(unsigned* out) {
  return enter_nvml("nvmlDeviceGetCount_v2", false, [&](Nvml&) { return count(out); });
}
FAKE_NVML int nvmlDeviceGetHandleByIndex(unsigned index, NvmlCard** out) {
  return enter_nvml("nvmlDeviceGetHandleByIndex", false, [&](Nvml& state) { return by_index(state, index, out); });
}
FAKE_NVML int nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlCard** out) {
  return enter_nvml("nvmlDeviceGetHandleByIndex_v2", false, [&](Nvml& state) { return by_index(state, index, out); });
}
FAKE_NVML int nvmlDeviceGetHandleByUUID(const char* text, NvmlCard** out) {
  return enter_nvml("nvmlDeviceGetHandleByUUID", false, [&](Nvml& state) {
    if (text == nullptr) return kNvmlInvalidArgument;
    for (int i = 0; i < device_count(); ++i) {
      if (card_uuid_text(i) == text) return found(state, i, out);
    }
    return kNvmlNotFound;
  });
}
FAKE_NVML int nvmlDeviceGetHandleByPciBusId(const char* text, NvmlCard** out) {
  return enter_nvml("nvmlDeviceGetHandleByPciBusId", false, [&](Nvml& state) {
    return text == nullptr ? kNvmlInvalidArgument : found(state, find_card_by_pci(text), out);
  });
}
FAKE_NVML int nvmlDeviceGetHandleByPciBusId_v2(const char* text, NvmlCard** out) {
  return enter_nvml("nvmlDeviceGetHandleByPciBusId_v2", false, [&](Nvml& state) {
    return text == nullptr ? kNvmlInvalidArgument : found(state, find_card_by_pci(text), out);
  });
}
