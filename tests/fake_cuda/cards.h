// The cards of the fake machine, by physical index: how many, names and identities. Shared by the fake driver and fake
// NVML.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/fake_cuda/sizes.h"

namespace fake {

// FAKE_CUDA_DEVICES, or two.
inline int device_count() {
  const char* const text = std::getenv("FAKE_CUDA_DEVICES");
  const int count = text == nullptr ? 2 : std::atoi(text);
  return count < 1 ? 1 : count > kMostDevices ? kMostDevices : count;
}

struct CardUuid {
  unsigned char bytes[16];
};

inline CardUuid card_uuid(int physical) {
  CardUuid uuid{{0xfa, 0x4e, 0xc0, 0xda, 0x00, 0x00, 0x40, 0x00, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00}};
  uuid.bytes[0] = static_cast<unsigned char>(0xf0 + physical);  // so that a short prefix tells the cards apart
  uuid.bytes[15] = static_cast<unsigned char>(physical + 1);
  return uuid;
}

inline std::string card_uuid_text(int physical) {
  const CardUuid uuid = card_uuid(physical);
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char two[3];
    std::snprintf(two, sizeof(two), "%02x", uuid.bytes[i]);
    text += two;
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

inline std::string card_name(int physical) { return "Fake GPU " + std::to_string(physical); }

inline unsigned card_pci_bus(int physical) { return static_cast<unsigned>(physical) + 1; }

// With a domain of 4 digits (the driver, old NVML) or 8 (NVML).
inline std::string card_pci_text(int physical, int domain_digits) {
  char text[32];
  std::snprintf(text, sizeof(text), "%0*x:%02X:00.0", domain_digits, 0u, card_pci_bus(physical));
  return text;
}

// The card that one entry of CUDA_VISIBLE_DEVICES means, or -1.
inline int find_card(const std::string& entry) {
  const size_t first = entry.find_first_not_of(' ');
  if (first == std::string::npos) return -1;
  const std::string name = entry.substr(first, entry.find_last_not_of(' ') - first + 1);
  if (name.rfind("GPU-", 0) == 0 && name.size() > 4) {
    for (int i = 0; i < device_count(); ++i) {
      if (card_uuid_text(i).compare(0, name.size(), name) == 0) return i;
    }
    return -1;
  }
  char* end = nullptr;
  const long number = std::strtol(name.c_str(), &end, 10);
  return *end == '\0' && number >= 0 && number < device_count() ? static_cast<int>(number) : -1;
}

// The card of a PCI id in either length, or -1.
inline int find_card_by_pci(const char* text) {
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  if (std::sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) return -1;
  if (domain != 0 || slot != 0 || function != 0 || bus < 1 || static_cast<int>(bus) > device_count()) return -1;
  return static_cast<int>(bus) - 1;
}

}  // namespace fake
