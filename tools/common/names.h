// Words for the numbers on the wire, the same in text and in JSON. Pure; unknown numbers come out as numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpucap::tools {

std::string operation_name(uint8_t operation);     // charge, release, refuse, fail, driver, limit, wait, observe
std::string kind_name(uint8_t kind);               // none, linear, array, pool, vmm, managed, context
std::string truth_name(uint32_t truth);            // none, nvml, device_difference
std::string result_name(int32_t result);           // as cuda.h spells it
std::string on_limit_name(uint32_t on_limit);      // deny, wait, observe
std::string limit_source_name(uint32_t source);    // none, environment, policy, set
std::string refused_by_name(uint32_t refused_by);  // none, cap, group, card

std::vector<std::string> operation_names();
// All spellings that result_name() can give, numbers left out.
std::vector<std::string> result_names();
int32_t result_number(const std::string& name);  // of one of these; -1 of any other

}  // namespace gpucap::tools
