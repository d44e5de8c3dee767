#include "shim/nvml/identity.h"

#include <atomic>

#include "shim/nvml/real_nvml.h"

namespace gpucap::nvml {
namespace {

enum class Place : uint32_t { kFree = 0, kBeingWritten, kReady };

// A place is written once. A thread that dies while it writes (in a forked child, all others do) costs one place.
struct Known {
  std::atomic<Place> place{Place::kFree};
  DeviceHandle handle = nullptr;
  Identity identity;
};
constexpr int kMostKnown = 256;  // 32 cards of 8 handles each
constinit Known known[kMostKnown]{};

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// "GPU-" or "MIG-", then 32 digits with dashes between.
bool read_uuid(const char* text, uint8_t* uuid) {
  int digits = 0;
  for (int i = 0; text[i] != '\0'; ++i) {
    if (i < 4 || text[i] == '-') continue;
    const int digit = digit_of(text[i]);
    if (digit < 0 || digits == 32) return false;
    uint8_t& byte = uuid[digits / 2];
    byte = static_cast<uint8_t>(digits % 2 == 0 ? digit << 4 : byte | digit);
    ++digits;
  }
  return digits == 32;
}

bool ask(DeviceHandle device, Identity* identity) {
  using GetUuid = Return(DeviceHandle, char*, unsigned int);
  if (real<GetUuid>(Function::k_nvmlDeviceGetUUID)(device, identity->text, kMaxUuidBytes) != kSuccess) return false;
  identity->text[kMaxUuidBytes - 1] = '\0';
  identity->has_uuid = read_uuid(identity->text, identity->uuid);
  return true;
}

}  // namespace

const Identity* identity_of(DeviceHandle device, Identity* scratch) {
  for (Known& entry : known) {
    Place place = entry.place.load(std::memory_order_acquire);
    if (place == Place::kReady && entry.handle == device) return &entry.identity;
    if (place != Place::kFree) continue;
    if (!ask(device, scratch)) return nullptr;
    if (!entry.place.compare_exchange_strong(place, Place::kBeingWritten)) return scratch;
    entry.handle = device;
    entry.identity = *scratch;
    entry.place.store(Place::kReady, std::memory_order_release);
    return &entry.identity;
  }
  return ask(device, scratch) ? scratch : nullptr;
}

}  // namespace gpucap::nvml
