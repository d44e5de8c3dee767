#include "shim/process/pages.h"

#include <sys/mman.h>

#include <cerrno>

namespace gpucap {
namespace {

void* take(size_t bytes) {
  const int saved = errno;
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  errno = saved;
  return pages == MAP_FAILED ? nullptr : pages;
}

void give_back(void* pages, size_t bytes) {
  const int saved = errno;
  munmap(pages, bytes);
  errno = saved;
}

}  // namespace

core::PageSource kernel_pages() { return {take, give_back}; }

}  // namespace gpucap
