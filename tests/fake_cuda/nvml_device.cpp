// Identity of a card and its sensors, whose readings are plausible constants, for the fake NVML.
#include <cstring>

#include "tests/fake_cuda/cards.h"
#include "tests/fake_cuda/nvml.h"

namespace fake {
namespace {

struct PciInfoV3 {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
struct PciInfoV2 {
  char bus_id[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  unsigned reserved[4];
};
struct PciInfoV1 {
  char bus_id[16];
  unsigned domain, bus, device, pci_device_id;
};
static_assert(sizeof(PciInfoV3) == 68 && sizeof(PciInfoV2) == 52);

constexpr unsigned kPciDeviceId = 0xfa4e10de;

template <class T>
NvmlReturn store(T* out, T value) {
  if (out == nullptr) return kNvmlInvalidArgument;
  *out = value;
  return kNvmlSuccess;
}

template <class Info>
NvmlReturn fill_pci(Info* out, const NvmlCard& card) {
  if (out == nullptr) return kNvmlInvalidArgument;
  *out = {};
  out->bus = card_pci_bus(card.physical);
  out->pci_device_id = kPciDeviceId;
  const std::string short_text = card_pci_text(card.physical, 4);
  if constexpr (requires { out->bus_id_legacy; }) {
    std::strcpy(out->bus_id_legacy, short_text.c_str());
    std::strcpy(out->bus_id, card_pci_text(card.physical, 8).c_str());
  } else {
    std::strcpy(out->bus_id, short_text.c_str());
  }
  return kNvmlSuccess;
}

struct Utilization {
  unsigned gpu, memory;
};

enum class Clock : int { kGraphics = 0, kStreaming = 1, kMemory = 2, kVideo = 3 };

unsigned clock_mhz(int type) { return static_cast<Clock>(type) == Clock::kMemory ? 3201 : 1980; }

}  // namespace
}  // namespace fake

using namespace fake;

FAKE_NVML int nvmlDeviceGetUUID(NvmlCard* card, char* out, unsigned length) {
  return with_card("nvmlDeviceGetUUID", card, [&](Nvml&, const NvmlCard& found) {
    return copy_text(out, length, card_uuid_text(found.physical).c_str());
  });
}
FAKE_NVML int nvmlDeviceGetName(NvmlCard* card, char* out, unsigned length) {
  return with_card("nvmlDeviceGetName", card, [&](Nvml&, const NvmlCard& found) {
    return copy_text(out, length, card_name(found.physical).c_str());
  });
}
FAKE_NVML int nvmlDeviceGetSerial(NvmlCard* card, char* out, unsigned length) {
  return with_card("nvmlDeviceGetSerial", card, [&](Nvml&, const NvmlCard& found) {
    return copy_text(out, length, ("FAKE" + std::to_string(found.physical)).c_str());
  });
}
FAKE_NVML int nvmlDeviceGetPciInfo(NvmlCard* card, PciInfoV1* out) {
  return with_card("nvmlDeviceGetPciInfo", card, [&](Nvml&, const NvmlCard& found) { return fill_pci(out, found); });
}
FAKE_NVML int nvmlDeviceGetPciInfo_v2(NvmlCard* card, PciInfoV2* out) {
  return with_card("nvmlDeviceGetPciInfo_v2", card, [&](Nvml&, const NvmlCard& found) { return fill_pci(out, found); });
}
FAKE_NVML int nvmlDeviceGetPciInfo_v3(NvmlCard* card, PciInfoV3* out) {
  return with_card("nvmlDeviceGetPciInfo_v3", card, [&](Nvml&, const NvmlCard& found) { return fill_pci(out, found); });
}
FAKE_NVML int nvmlDeviceGetIndex(NvmlCard* card, unsigned* out) {
  return with_card("nvmlDeviceGetIndex", card,
                   [&](Nvml&, const NvmlCard& found) { return store(out, static_cast<unsigned>(found.physical)); });
}
FAKE_NVML int nvmlDeviceGetMinorNumber(NvmlCard* card, unsigned* out) {
  return with_card("nvmlDeviceGetMinorNumber", card,
                   [&](Nvml&, const NvmlCard& found) { return store(out, static_cast<unsigned>(found.physical)); });
}
FAKE_NVML int nvmlDeviceGetUtilizationRates(NvmlCard* card, Utilization* out) {
  return with_card("nvmlDeviceGetUtilizationRates", card, [&](Nvml&, const NvmlCard&) {
    return store(out, Utilization{7, 3});
  });
}
FAKE_NVML int nvmlDeviceGetClockInfo(NvmlCard* card, int type, unsigned* out) {
  return with_card("nvmlDeviceGetClockInfo", card, [&](Nvml&, const NvmlCard&) { return store(out, clock_mhz(type)); });
}
FAKE_NVML int nvmlDeviceGetMaxClockInfo(NvmlCard* card, int type, unsigned* out) {
  return with_card("nvmlDeviceGetMaxClockInfo", card,
                   [&](Nvml&, const NvmlCard&) { return store(out, clock_mhz(type)); });
}
FAKE_NVML int nvmlDeviceGetTemperature(NvmlCard* card, int, unsigned* out) {
  return with_card("nvmlDeviceGetTemperature", card, [&](Nvml&, const NvmlCard&) { return store(out, 35u); });
}
FAKE_NVML int nvmlDeviceGetCudaComputeCapability(NvmlCard* card, int* major, int* minor) {
  return with_card("nvmlDeviceGetCudaComputeCapability", card, [&](Nvml&, const NvmlCard&) {
    const NvmlReturn result = store(major, 9);
    return result == kNvmlSuccess ? store(minor, 0) : result;
  });
}
FAKE_NVML int nvmlDeviceGetMigMode(NvmlCard* card, unsigned*, unsigned*) {
  return with_card("nvmlDeviceGetMigMode", card, [&](Nvml&, const NvmlCard&) { return kNvmlNotSupported; });
}

// No samples were taken.
FAKE_NVML int nvmlDeviceGetProcessUtilization(NvmlCard* card, void*, unsigned* count, unsigned long long) {
  return with_card("nvmlDeviceGetProcessUtilization", card, [&](Nvml&, const NvmlCard&) {
    if (count == nullptr) return kNvmlInvalidArgument;
    *count = 0;
    return kNvmlNotFound;
  });
}

#define FAKE_READING(name, type, value)                                                             \
  FAKE_NVML int name(NvmlCard* card, type* out) {                                                   \
    return with_card(#name, card, [&](Nvml&, const NvmlCard&) { return store<type>(out, value); }); \
  }
FAKE_READING(nvmlDeviceGetPowerUsage, unsigned, 120000)
FAKE_READING(nvmlDeviceGetEnforcedPowerLimit, unsigned, 700000)
FAKE_READING(nvmlDeviceGetPowerManagementLimit, unsigned, 700000)
FAKE_READING(nvmlDeviceGetFanSpeed, unsigned, 30)
FAKE_READING(nvmlDeviceGetPerformanceState, int, 0)
FAKE_READING(nvmlDeviceGetPersistenceMode, int, 1)
FAKE_READING(nvmlDeviceGetDisplayMode, int, 0)
FAKE_READING(nvmlDeviceGetDisplayActive, int, 0)
FAKE_READING(nvmlDeviceGetComputeMode, int, 0)
FAKE_READING(nvmlDeviceGetBrand, int, 0)
