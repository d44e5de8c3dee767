/* The control of start.py: a library that costs at every start all that libgpucap.so must not. Never part of anything
 * else. */
#include <stdlib.h>
#include <sys/mman.h>

enum { kPages = 64, kPageBytes = 4096, kPointers = 1024 };

/* Pointers to be found by name, since another library could have a heavy_sink, and pointers to be set only. */
extern int heavy_sink;
extern int* const heavy_pointers[kPointers];
int heavy_sink;
int* const heavy_pointers[kPointers] = {[0 ... kPointers - 1] = &heavy_sink};
static int sink;
static int* const pointers[kPointers] = {[0 ... kPointers - 1] = &sink};

/* Touched pages, every other of them with a protection of its own, so that they stay separate mappings. */
static void touch(void) {
  char* pages = mmap(NULL, kPages * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) abort();
  for (size_t i = 0; i < kPages; ++i) {
    pages[i * kPageBytes] = (char)(pointers[i] == heavy_pointers[i]);
    if (i % 2 == 0 && mprotect(pages + i * kPageBytes, kPageBytes, PROT_READ) != 0) abort();
  }
}

__attribute__((constructor)) static void at_start(void) { touch(); }
__attribute__((destructor)) static void at_end(void) { touch(); }
