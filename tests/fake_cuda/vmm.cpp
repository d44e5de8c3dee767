// Physical memory and its handles: create, release, retain, export, import. See vmm.h; mapping is in vmm_map.cpp.
#include "tests/fake_cuda/vmm.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fake {
namespace {

uint64_t next_id = 0;

// On the page after the memory in a shareable file: what an importer needs to know.
struct Ticket {
  static constexpr uint64_t kMagic = 0x46414b45564d4d31;
  uint64_t magic;
  uint64_t id;
  uint64_t bytes;
  int32_t pid;
  int32_t physical_card;
  CUmemAllocationProp properties;
};
constexpr uint64_t kTicketBytes = 4096;

bool write_ticket(Driver& driver, const Physical& physical) {
  const Ticket ticket{Ticket::kMagic,
                      physical.id,
                      physical.bytes,
                      ::getpid(),
                      physical.device < 0 ? -1 : driver.device(physical.device)->physical,
                      physical.properties};
  return ::pwrite(physical.extent.fd, &ticket, sizeof(ticket), static_cast<off_t>(physical.bytes)) ==
         static_cast<ssize_t>(sizeof(ticket));
}

bool is_host(CUmemLocationType type) {
  return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
         type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

CUresult create(Driver& driver, CUmemGenericAllocationHandle* out, uint64_t bytes, const CUmemAllocationProp* prop) {
  if (out == nullptr || prop == nullptr || bytes == 0 || bytes % kBlockBytes != 0) return CUDA_ERROR_INVALID_VALUE;
  if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  const unsigned types = static_cast<unsigned>(prop->requestedHandleTypes);
  if ((types & ~static_cast<unsigned>(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  auto physical = std::make_unique<Physical>();
  if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    physical->device = prop->location.id;
    if (driver.device(physical->device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (bytes >= kAbsurdBytes || !driver.take(physical->device, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  } else if (!is_host(prop->location.type)) {
    return CUDA_ERROR_INVALID_VALUE;
  } else if (bytes >= kAbsurdBytes) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  physical->id = ++next_id;
  physical->bytes = bytes;
  physical->properties = *prop;
  physical->shareable = types != 0;
  physical->extent =
      physical->shareable ? Backing::create_shareable(bytes + kTicketBytes) : driver.backing.create(bytes);
  physical->extent.bytes = bytes;
  if (physical->extent.fd < 0 || (physical->shareable && !write_ticket(driver, *physical))) {
    if (physical->device >= 0) driver.give(physical->device, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  vmm().physicals.insert(physical.get());
  *out = as_number(make_handle(physical.release()));
  return CUDA_SUCCESS;
}

CUresult export_handle(Handle* handle, void* out, CUmemAllocationHandleType type) {
  if (vmm().handles.count(handle) == 0 || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  if (!handle->physical->shareable) return CUDA_ERROR_INVALID_VALUE;
  const int fd = ::fcntl(handle->physical->extent.fd, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(out) = fd;
  return CUDA_SUCCESS;
}

CUresult import_handle(Driver& driver, CUmemGenericAllocationHandle* out, void* os_handle,
                       CUmemAllocationHandleType type) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  const int fd = static_cast<int>(reinterpret_cast<intptr_t>(os_handle));
  struct stat status {};
  Ticket ticket{};
  if (::fstat(fd, &status) != 0 || status.st_size < static_cast<off_t>(kTicketBytes)) return CUDA_ERROR_INVALID_VALUE;
  const off_t place = status.st_size - static_cast<off_t>(kTicketBytes);
  if (::pread(fd, &ticket, sizeof(ticket), place) != static_cast<ssize_t>(sizeof(ticket)) ||
      ticket.magic != Ticket::kMagic) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (ticket.pid == ::getpid()) {
    for (Physical* const physical : vmm().physicals) {
      if (physical->id == ticket.id && !physical->imported)
        return *out = as_number(make_handle(physical)), CUDA_SUCCESS;
    }
  }
  auto physical = std::make_unique<Physical>();
  for (size_t i = 0; i < driver.devices.size(); ++i) {
    if (driver.devices[i]->physical == ticket.physical_card) physical->device = static_cast<int>(i);
  }
  if (ticket.physical_card >= 0 && physical->device < 0) return CUDA_ERROR_INVALID_DEVICE;
  physical->bytes = ticket.bytes;
  physical->properties = ticket.properties;
  physical->properties.location.id = physical->device;
  physical->imported = true;
  physical->shareable = true;
  physical->extent = {::fcntl(fd, F_DUPFD_CLOEXEC, 0), 0, ticket.bytes};
  if (physical->extent.fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  vmm().physicals.insert(physical.get());
  *out = as_number(make_handle(physical.release()));
  return CUDA_SUCCESS;
}

void drop_use(Driver& driver, Handle* handle) {
  Physical* const physical = handle->physical;
  if (handle->references == 0 && handle->mappings == 0) {
    vmm().handles.erase(handle);
    delete handle;
  }
  if (--physical->uses > 0) return;
  if (physical->device >= 0 && !physical->imported) driver.give(physical->device, physical->bytes);
  if (physical->shareable) Backing::close_shareable(physical->extent);
  vmm().physicals.erase(physical);
  delete physical;
}

}  // namespace

VmmState& vmm() {
  static VmmState& state = *new VmmState;
  return state;
}

Handle* make_handle(Physical* physical) {
  auto* const handle = new Handle{physical, 1, 0};
  ++physical->uses;
  vmm().handles.insert(handle);
  return handle;
}

void drop_reference(Driver& driver, Handle* handle) {
  --handle->references;
  drop_use(driver, handle);
}

void drop_mapping(Driver& driver, Handle* handle) {
  --handle->mappings;
  drop_use(driver, handle);
}

}  // namespace fake

using namespace fake;

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* prop,
                     unsigned long long flags) {
  return enter("cuMemCreate", Need::kInitialised,
               [&](Driver& d) { return flags != 0 ? CUDA_ERROR_INVALID_VALUE : create(d, handle, size, prop); });
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return enter("cuMemRelease", Need::kInitialised, [&](Driver& d) {
    Handle* const memory = as_memory(handle);
    if (vmm().handles.count(memory) == 0 || memory->references == 0) return CUDA_ERROR_INVALID_VALUE;
    drop_reference(d, memory);
    return CUDA_SUCCESS;
  });
}
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* addr) {
  return enter("cuMemRetainAllocationHandle", Need::kInitialised, [&](Driver& d) {
    uint64_t base = 0;
    const Range* const range = d.find_range(reinterpret_cast<uint64_t>(addr), &base);
    if (handle == nullptr || range == nullptr || range->kind != RangeKind::kMapping) return CUDA_ERROR_INVALID_VALUE;
    Handle* const memory = as_memory(range->owner);
    ++memory->references;
    ++memory->physical->uses;
    *handle = as_number(memory);
    return CUDA_SUCCESS;
  });
}
CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                      unsigned long long) {
  return enter("cuMemExportToShareableHandle", Need::kInitialised,
               [&](Driver&) { return export_handle(as_memory(handle), out, type); });
}
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* os_handle,
                                        CUmemAllocationHandleType type) {
  return enter("cuMemImportFromShareableHandle", Need::kInitialised,
               [&](Driver& d) { return import_handle(d, handle, os_handle, type); });
}
CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags) {
  return enter("cuMemGetAllocationGranularity", Need::kInitialised, [&](Driver&) {
    if (granularity == nullptr || prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *granularity = kBlockBytes;
    return CUDA_SUCCESS;
  });
}
CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop, CUmemGenericAllocationHandle handle) {
  return enter("cuMemGetAllocationPropertiesFromHandle", Need::kInitialised, [&](Driver&) {
    Handle* const memory = as_memory(handle);
    if (prop == nullptr || vmm().handles.count(memory) == 0) return CUDA_ERROR_INVALID_VALUE;
    *prop = memory->physical->properties;
    return CUDA_SUCCESS;
  });
}
