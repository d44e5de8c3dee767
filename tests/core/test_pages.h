// Pages for the core's tables in tests, with a count of what is out and a limit
// to run into.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>

#include "shim/core/pages.h"

namespace gpucap::core {

inline std::atomic<size_t> pages_out{0};  // tables of several threads grow at once
inline size_t pages_limit = SIZE_MAX;

inline PageSource test_pages() {
  return {[](size_t bytes) -> void* {
            if (pages_out + bytes > pages_limit) return nullptr;
            pages_out += bytes;
            return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
          },
          [](void* pages, size_t bytes) {
            pages_out -= bytes;
            munmap(pages, bytes);
          }};
}

}  // namespace gpucap::core
