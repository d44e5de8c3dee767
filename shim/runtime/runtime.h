// What the top needs of the runtime hooks: their names, as API numbers after the driver's.
#pragma once

#include <cstdint>

namespace gpucap::runtime {

// The names in table order; *count of them. The first gets the API number `first_number`.
const char* const* names(uint32_t* count);
void set_first_number(uint16_t first_number);
// Whether this is the name of one of them.
[[nodiscard]] bool has(const char* name);
// Whether this address is a function of this library.
[[nodiscard]] bool is_ours(const void* address);

}  // namespace gpucap::runtime
