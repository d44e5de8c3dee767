// A libnvidia-ml.so.1 of a machine with one card that is divided: the card by index, one instance by UUID. Only what
// the client calls.
#include <cstring>

#include "tests/e2e/nvml_functions.h"

#define FAKE_NVML extern "C" __attribute__((visibility("default"))) int

namespace {

struct Thing {
  const char* uuid;
  unsigned long long bytes;
};
Thing card{"GPU-f04ec0da-0000-4000-8000-000000000001", 1ull << 34};
Thing instance{"MIG-5a1b2c3d-0000-5000-8000-000000000009", 1ull << 33};

Thing& thing(void* handle) { return *static_cast<Thing*>(handle); }

}  // namespace

FAKE_NVML nvmlInit_v2() { return 0; }
FAKE_NVML nvmlShutdown() { return 0; }
FAKE_NVML nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 1;
  return 0;
}
FAKE_NVML nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  *handle = &card;
  return index == 0 ? 0 : 2;
}
FAKE_NVML nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  *handle = strcmp(uuid, card.uuid) == 0 ? &card : &instance;
  return strcmp(uuid, thing(*handle).uuid) == 0 ? 0 : 6;
}
FAKE_NVML nvmlDeviceGetHandleByPciBusId_v2(const char*, void**) { return 6; }
FAKE_NVML nvmlDeviceGetUUID(void* handle, char* text, unsigned length) {
  if (strlen(thing(handle).uuid) >= length) return 7;
  strcpy(text, thing(handle).uuid);
  return 0;
}
FAKE_NVML nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, NvmlProcess*) {
  *count = 0;
  return 0;
}
FAKE_NVML nvmlDeviceGetMemoryInfo(void* handle, NvmlMemory* memory) {
  const unsigned long long bytes = thing(handle).bytes;
  *memory = {bytes, bytes - 1000, 1000};
  return 0;
}
// With something of the system's, as real cards have.
FAKE_NVML nvmlDeviceGetMemoryInfo_v2(void* handle, NvmlMemoryV2* memory) {
  if (memory->version != kNvmlMemoryV2) return 25;
  const unsigned long long bytes = thing(handle).bytes;
  *memory = {kNvmlMemoryV2, bytes, 500, bytes - 1500, 1000};
  return 0;
}
