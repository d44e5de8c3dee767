#include "shim/driver/step.h"

#include <unistd.h>

#include "shim/driver/linear.h"
#include "shim/process/log.h"

namespace gpucap::driver {
void tell_failure(Process& process, Device& device, Api api, gpucap_kind kind, uint64_t bytes, CUresult result) {
  process.activate(device);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) add(device.gauge->failed_count, 1);
  Event event;
  event.api = static_cast<uint16_t>(api);
  event.operation = GPUCAP_OP_FAIL;
  event.kind = kind;
  event.bytes = bytes;
  event.result = static_cast<int32_t>(result);
  event.at_ns = thread_words.call_ended_ns;
  event.took_ns = thread_words.call_took_ns;
  thread_words.call_ended_ns = thread_words.call_took_ns = 0;
  if (result == CUDA_ERROR_OUT_OF_MEMORY) event.refused_by = GPUCAP_REFUSED_BY_CARD;
  process.telemetry().record(device, event);
  if (result != CUDA_ERROR_OUT_OF_MEMORY || !log_enabled(LogLevel::kWarn)) return;
  const core::BytesText asked(static_cast<int64_t>(bytes > INT64_MAX ? INT64_MAX : bytes));
  const core::BytesText used(device.ledger.used());
  log_line_rarely(
      LogLevel::kWarn,
      "the card itself has no room for %s of %s on GPU %u: not gpucap's cap; this process uses %s [pid %ld]",
      name_of(api), asked.text, device.ordinal, used.text, static_cast<long>(getpid()));
}

CUresult refuse_by_cap(Process& process, Device& device, Api api, uint64_t bytes) {
  refuse(process, device, static_cast<uint16_t>(api), bytes, CUDA_ERROR_OUT_OF_MEMORY);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

void note_otherwise(Process& process, bool noted, const core::Record& replaced) {
  if (!noted) {
    log_line_rarely(LogLevel::kError, "no memory to note an allocation; its charge stands until the next look at NVML");
  } else if (replaced.space == core::Space::kPointer || replaced.space == core::Space::kArray ||
             replaced.space == core::Space::kMipmap) {
    give_back(process, replaced);
  }
}

void give_back(Process& process, const core::Record& record) {
  Device* device = process.device(record.device);
  if (device == nullptr || !device->active.load(std::memory_order_acquire)) return;
  const auto kind = static_cast<gpucap_kind>(record.kind);
  count_live(*device, -1);
  if (kind == GPUCAP_KIND_POOL) return;  // the pool keeps it; see pool::refresh
  if (linear::shares_block(kind, record.bytes)) {
    if (device->blocks.remove(record.key, record.bytes))
      charge(*device, kind, -static_cast<int64_t>(core::BlockMap::kBlockBytes));
    return;
  }
  charge(*device, kind, -static_cast<int64_t>(record.bytes));
}

}  // namespace gpucap::driver
