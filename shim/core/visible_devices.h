// Which number CUDA gives to a device in this process, worked out from CUDA_VISIBLE_DEVICES as CUDA reads it. For
// programs that ask NVML and have not started CUDA; where it runs, its own numbers count. Pure: the caller reads the
// environment and knows the machine.
#pragma once

#include <span>
#include <string_view>

namespace gpucap::core {

inline constexpr int kNotVisible = -1;

// The ordinal of `device`, or kNotVisible. `machine` has the UUID of every GPU ("GPU-...") in the order of NVML, which
// is the order of the PCI bus; `device` is one of them, or the UUID of a MIG instance ("MIG-..."). `visible` is the
// text of CUDA_VISIBLE_DEVICES, nullptr where it is unset.
//
// Without the variable the order is that of `machine`. CUDA puts faster cards first unless CUDA_DEVICE_ORDER is
// PCI_BUS_ID, so on a machine of different cards its own order may be another; the same holds for numbers in the list.
// Numbers and the beginnings of UUIDs are accepted in any mixture. What follows an entry that names no device is
// invisible, and so is everything when a device is named twice. A MIG instance is visible by its UUID, or without the
// variable, when it is number 0: CUDA gives a process one instance.
[[nodiscard]] int visible_ordinal(std::span<const std::string_view> machine, std::string_view device,
                                  const char* visible);

}  // namespace gpucap::core
