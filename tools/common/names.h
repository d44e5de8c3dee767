// Words for the numbers on the wire, the same in text and in JSON. Pure; unknown numbers come out as numbers.
#pragma once

#include <cstdint>
#include <string>

namespace gpucap::tools {

std::string operation_name(uint8_t operation);  // charge, release, refuse, fail, driver
std::string kind_name(uint8_t kind);            // none, linear, array, pool, vmm, managed, context
std::string truth_name(uint32_t truth);         // none, nvml, device_difference
std::string result_name(int32_t result);        // as cuda.h spells it

}  // namespace gpucap::tools
