#include "shim/driver/enumerate.h"

#include <cstdio>
#include <cstring>

#include "shim/driver/real_driver.h"

namespace gpucap::driver {

int enumerate(Device* devices, int most) {
  int count = 0;
  if (real().cuDeviceGetCount(&count) != CUDA_SUCCESS) return -1;
  if (count > most) count = most;
  for (int i = 0; i < count; ++i) {
    Device& device = devices[i];
    device.ordinal = static_cast<uint32_t>(i);
    CUdevice handle = 0;
    if (real().cuDeviceGet(&handle, i) != CUDA_SUCCESS) return -1;
    CUuuid uuid{};
    // _v2 names the MIG instance where there is one; drivers before CUDA 11.4 have only the first.
    if (real().cuDeviceGetUuid_v2(&uuid, handle) != CUDA_SUCCESS) real().cuDeviceGetUuid(&uuid, handle);
    memcpy(device.uuid, uuid.bytes, sizeof(device.uuid));
    const uint8_t* u = device.uuid;
    snprintf(device.uuid_text, sizeof(device.uuid_text),
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1], u[2], u[3], u[4],
             u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
    real().cuDeviceGetName(device.name, sizeof(device.name), handle);
    real().cuDeviceGetPCIBusId(device.pci_bus_id, sizeof(device.pci_bus_id), handle);
    size_t bytes = 0;
    real().cuDeviceTotalMem_v2(&bytes, handle);
    device.physical_bytes = bytes;
  }
  return count;
}

}  // namespace gpucap::driver
