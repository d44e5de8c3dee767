// Legacy inter-process handles. The importer maps the exporter's memory file, so both see the same bytes. See ipc.h.
#include "tests/fake_cuda/ipc.h"

#include <unistd.h>

#include <cstring>

#include "tests/fake_cuda/context.h"

namespace fake {
namespace {

struct Ticket {
  static constexpr uint64_t kMagic = 0x46414b4549504331;
  uint64_t magic;
  int32_t pid;
  int32_t fd;
  uint64_t offset;
  uint64_t bytes;
};
static_assert(sizeof(Ticket) <= sizeof(CUipcMemHandle));

CUresult make_ticket(Driver& driver, CUipcMemHandle* out, uint64_t address) {
  uint64_t base = 0;
  const Range* const range = driver.find_range(address, &base);
  if (out == nullptr || range == nullptr || range->kind != RangeKind::kLinear) return CUDA_ERROR_INVALID_VALUE;
  const Ticket ticket{Ticket::kMagic, ::getpid(), range->extent.fd, range->extent.offset, range->bytes};
  std::memset(out, 0, sizeof(*out));
  std::memcpy(out, &ticket, sizeof(ticket));
  return CUDA_SUCCESS;
}

CUresult open(Driver& driver, CUdeviceptr* out, const CUipcMemHandle& handle) {
  Ticket ticket{};
  std::memcpy(&ticket, &handle, sizeof(ticket));
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (ticket.magic != Ticket::kMagic) return CUDA_ERROR_INVALID_HANDLE;
  if (ticket.pid == ::getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  const uint64_t lead = ticket.offset % 4096;  // files are mapped by pages, allocations start at granules
  const uint64_t whole = round_up(lead + ticket.bytes, 4096);
  const Extent extent = Backing::open_of(ticket.pid, {ticket.fd, ticket.offset - lead, whole});
  if (extent.fd < 0) return CUDA_ERROR_MAP_FAILED;
  const uint64_t mapped = Backing::map(extent, false);
  Backing::close_shareable(extent);
  if (mapped == 0) return CUDA_ERROR_MAP_FAILED;
  Range range;
  range.kind = RangeKind::kImported;
  range.bytes = ticket.bytes;
  range.mapped = whole;
  range.context = current_context();
  range.device = range.context->device;
  driver.ranges[mapped + lead] = range;
  *out = mapped + lead;
  return CUDA_SUCCESS;
}

CUresult close(Driver& driver, uint64_t address) {
  const auto found = driver.ranges.find(address);
  if (found == driver.ranges.end() || found->second.kind != RangeKind::kImported) return CUDA_ERROR_INVALID_VALUE;
  release_import(address, found->second);
  driver.ranges.erase(found);
  return CUDA_SUCCESS;
}

}  // namespace

void release_import(uint64_t address, const Range& range) { Backing::release(address / 4096 * 4096, range.mapped); }

}  // namespace fake

using namespace fake;

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr dptr) {
  return enter("cuIpcGetMemHandle", Need::kContext, [&](Driver& d) { return make_ticket(d, handle, dptr); });
}
CUresult cuIpcOpenMemHandle(CUdeviceptr* dptr, CUipcMemHandle handle, unsigned int) {
  return enter("cuIpcOpenMemHandle", Need::kContext, [&](Driver& d) { return fake::open(d, dptr, handle); });
}
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* dptr, CUipcMemHandle handle, unsigned int) {
  return enter("cuIpcOpenMemHandle_v2", Need::kContext, [&](Driver& d) { return fake::open(d, dptr, handle); });
}
CUresult cuIpcCloseMemHandle(CUdeviceptr dptr) {
  return enter("cuIpcCloseMemHandle", Need::kContext, [&](Driver& d) { return fake::close(d, dptr); });
}
