// What devices say about themselves: count, names, identities, memory. Attributes: device_attributes.cpp.
#include <algorithm>
#include <cstring>

#include "tests/fake_cuda/cards.h"
#include "tests/fake_cuda/context.h"

namespace fake {
namespace {

template <class Body>
CUresult with_device(const char* name, CUdevice ordinal, Body body) {
  return enter(name, Need::kInitialised, [&](Driver& driver) {
    Device* const device = driver.device(ordinal);
    return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : body(driver, *device);
  });
}

CUresult copy_text(char* out, int length, const std::string& text) {
  if (out == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::strncpy(out, text.c_str(), static_cast<size_t>(length));
  out[length - 1] = '\0';
  return CUDA_SUCCESS;
}

CUresult copy_uuid(CUuuid* out, const Device& device) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CardUuid uuid = card_uuid(device.physical);
  std::memcpy(out, &uuid, sizeof(uuid));
  return CUDA_SUCCESS;
}

// The oldest API counts in 32 bits.
unsigned narrow(uint64_t bytes) { return static_cast<unsigned>(std::min<uint64_t>(bytes, UINT32_MAX)); }

void look(Driver& driver, uint64_t* free, uint64_t* total) {
  const Device& device = *driver.device(current_context()->device);
  *total = driver.memory_bytes;
  *free = *total - std::min(*total, driver.truth.used(device.physical));
}

}  // namespace
}  // namespace fake

using namespace fake;

CUresult cuDeviceGetCount(int* count) {
  return enter("cuDeviceGetCount", Need::kInitialised, [&](Driver& d) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(d.devices.size());
    return CUDA_SUCCESS;
  });
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return with_device("cuDeviceGet", ordinal, [&](Driver&, Device&) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}
CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  return with_device("cuDeviceGetName", device,
                     [&](Driver&, Device& found) { return copy_text(name, length, card_name(found.physical)); });
}
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return with_device("cuDeviceGetUuid", device, [&](Driver&, Device& found) { return copy_uuid(uuid, found); });
}
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return with_device("cuDeviceGetUuid_v2", device, [&](Driver&, Device& found) { return copy_uuid(uuid, found); });
}
CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  return with_device("cuDeviceGetPCIBusId", device,
                     [&](Driver&, Device& found) { return copy_text(text, length, card_pci_text(found.physical, 4)); });
}
CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  return enter("cuDeviceGetByPCIBusId", Need::kInitialised, [&](Driver& d) {
    if (device == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const int physical = find_card_by_pci(text);
    for (size_t i = 0; i < d.devices.size(); ++i) {
      if (d.devices[i]->physical == physical) return *device = static_cast<int>(i), CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
  });
}
CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return with_device("cuDeviceTotalMem_v2", device, [&](Driver& d, Device&) {
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *bytes = d.memory_bytes;
    return CUDA_SUCCESS;
  });
}
CUresult cuDeviceTotalMem(unsigned int* bytes, CUdevice device) {
  return with_device("cuDeviceTotalMem", device, [&](Driver& d, Device&) {
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *bytes = narrow(d.memory_bytes);
    return CUDA_SUCCESS;
  });
}
CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  return enter("cuMemGetInfo_v2", Need::kContext, [&](Driver& d) {
    uint64_t free_bytes = 0, total_bytes = 0;
    look(d, &free_bytes, &total_bytes);
    if (free != nullptr) *free = free_bytes;
    if (total != nullptr) *total = total_bytes;
    return CUDA_SUCCESS;
  });
}
CUresult cuMemGetInfo(unsigned int* free, unsigned int* total) {
  return enter("cuMemGetInfo", Need::kContext, [&](Driver& d) {
    uint64_t free_bytes = 0, total_bytes = 0;
    look(d, &free_bytes, &total_bytes);
    if (free != nullptr) *free = narrow(free_bytes);
    if (total != nullptr) *total = narrow(total_bytes);
    return CUDA_SUCCESS;
  });
}
CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  return with_device("cuDeviceComputeCapability", device, [&](Driver&, Device&) {
    if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *major = 9;
    *minor = 0;
    return CUDA_SUCCESS;
  });
}
CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return with_device("cuDeviceCanAccessPeer", device, [&](Driver& d, Device&) {
    if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (d.device(peer) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer ? 1 : 0;
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int) {
  return enter("cuCtxEnablePeerAccess", Need::kContext, [&](Driver& d) {
    return d.contexts.count(as_context(peer)) == 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
  });
}
CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  return enter("cuCtxDisablePeerAccess", Need::kContext, [&](Driver& d) {
    return d.contexts.count(as_context(peer)) == 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
  });
}
