// Where the core's tables get their memory: whole pages from the caller, never malloc, since the host program may be
// inside its own allocator when it calls the driver.
#pragma once

#include <cstddef>

namespace gpucap::core {

struct PageSource {
  void* (*take)(size_t bytes) = nullptr;  // zeroed, page-aligned; nullptr when there is none
  void (*give_back)(void* pages, size_t bytes) = nullptr;
};

}  // namespace gpucap::core
