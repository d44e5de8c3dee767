// The parts that every charging and releasing verb shares: promise before the driver is called, settle with what came
// out, tell of it. A Step lives on the stack of one call.
#pragma once

#include "shim/driver/call.h"
#include "shim/driver/real_driver.h"
#include "shim/process/quota.h"

namespace gpucap::driver {

// How a call goes on after the books were asked.
enum class Go : uint8_t {
  kPass,    // call the driver, nothing to note: gpucap is inert, or the driver will refuse by itself
  kCharge,  // call the driver, then settle
  kRefuse,  // do not call; answer CUDA_ERROR_OUT_OF_MEMORY
};

// Asks the driver, within a flight. Where the card itself is full and GPUCAP_ON_LIMIT=wait, waits and asks again.
template <typename Function>
CUresult ask_driver(const Call<Function>& call, Process& process, Device& device, uint64_t bytes, Timing timing) {
  CUresult result = call.timed(timing);
  uint64_t began_ns = 0;
  while (result == CUDA_ERROR_OUT_OF_MEMORY && process.config().on_limit.mode == core::OnLimitValue::Mode::kWait) {
    end_flight(device);
    const bool again = wait_for_card(process, device, static_cast<uint16_t>(call.api()), bytes, &began_ns);
    begin_flight(device);
    if (!again) break;
    result = call.timed(timing);
  }
  return result;
}

// A call that the driver turned down: an event, and a line if it was the card that is full.
__attribute__((cold)) void tell_failure(Process& process, Device& device, Api api, gpucap_kind kind, uint64_t bytes,
                                        CUresult result);
// A call that took memory.
inline void tell_charge(Process& process, Device& device, Api api, gpucap_kind kind, uint64_t address, uint64_t bytes) {
  process.telemetry().record_call(device, {static_cast<uint16_t>(api), GPUCAP_OP_CHARGE, kind}, address, bytes);
}
// A call that gave memory back.
inline void tell_release(Process& process, Device& device, Api api, gpucap_kind kind, uint64_t address,
                         uint64_t bytes) {
  process.telemetry().record_call(device, {static_cast<uint16_t>(api), GPUCAP_OP_RELEASE, kind}, address, bytes);
}

// Refuses, with all that goes with it; always returns CUDA_ERROR_OUT_OF_MEMORY.
__attribute__((cold)) CUresult refuse_by_cap(Process& process, Device& device, Api api, uint64_t bytes);

// Notes a live allocation. If the table still held something under that name, its memory went without our seeing it,
// and its charge goes now.
__attribute__((cold)) void note_otherwise(Process& process, bool noted, const core::Record& replaced);
[[gnu::always_inline]] inline void note(Process& process, const core::Record& record) {
  core::Record replaced;
  const bool noted = process.table().insert(record, &replaced);
  if (!noted || replaced.space != core::Space::kNone) [[unlikely]]
    note_otherwise(process, noted, replaced);
}

// Takes the charge of a record back: the ledger, the live count, the packing of small blocks.
void give_back(Process& process, const core::Record& record);

}  // namespace gpucap::driver
