/* What libstdc++, libgcc and new headers ask of the C library that glibc 2.17 does not have yet. Linked into everything
 * that has the floor (see cmake/GlibcFloor.cmake), as a member of the stand-in for libc.so: only what is used comes in,
 * and none of it is exported. Each function says which glibc brought it. It never calls anything newer than the floor.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* 2.32. True lets libstdc++ leave out atomics where there is one thread; false is always right. */
HIDDEN char __libc_single_threaded = 0;

/* 2.33. Before, these were calls of __xstat and its like with the version of struct stat. */
#if defined(__x86_64__)
#define STAT_VERSION 1
#else
#define STAT_VERSION 0
#endif
int __xstat(int version, const char* path, struct stat* status);
int __lxstat(int version, const char* path, struct stat* status);
int __fxstat(int version, int file, struct stat* status);
int __fxstatat(int version, int folder, const char* path, struct stat* status, int flags);
HIDDEN int stat(const char* path, struct stat* status) { return __xstat(STAT_VERSION, path, status); }
HIDDEN int lstat(const char* path, struct stat* status) { return __lxstat(STAT_VERSION, path, status); }
HIDDEN int fstat(int file, struct stat* status) { return __fxstat(STAT_VERSION, file, status); }
HIDDEN int fstatat(int folder, const char* path, struct stat* status, int flags) {
  return __fxstatat(STAT_VERSION, folder, path, status, flags);
}
/* One layout on 64-bit machines. */
HIDDEN int stat64(const char* path, struct stat64* status) { return stat(path, (struct stat*)status); }
HIDDEN int lstat64(const char* path, struct stat64* status) { return lstat(path, (struct stat*)status); }
HIDDEN int fstat64(int file, struct stat64* status) { return fstat(file, (struct stat*)status); }
HIDDEN int fstatat64(int folder, const char* path, struct stat64* status, int flags) {
  return fstatat(folder, path, (struct stat*)status, flags);
}

/* 2.32 brought it from libpthread into libc. On Linux both are about the calling thread. */
HIDDEN int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) {
  const int saved = errno;
  const int error = sigprocmask(how, set, before) == 0 ? 0 : errno;
  errno = saved;
  return error;
}

/* 2.25. Kernels of glibc 2.17's days may lack the system call. */
HIDDEN int getentropy(void* buffer, size_t length) {
  if (syscall(SYS_getrandom, buffer, length, 0) == (long)length) return 0;
  const int file = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  const ssize_t got = read(file, buffer, length);
  close(file);
  if (got == (ssize_t)length) return 0;
  errno = EIO;
  return -1;
}

/* 2.27. */
HIDDEN int memfd_create(const char* name, unsigned flags) { return (int)syscall(SYS_memfd_create, name, flags); }

/* 2.36. It cannot fail, so neither does this. */
HIDDEN uint32_t arc4random(void) {
  uint32_t value;
  if (getentropy(&value, sizeof(value)) != 0) abort();
  return value;
}

#if __GLIBC_PREREQ(2, 35)
/* 2.35. How the unwinder finds the tables of the code at an address. */
struct Search {
  uintptr_t address;
  struct dl_find_object* result;
};

static int look_at_object(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  struct Search* const search = data;
  uintptr_t low = UINTPTR_MAX, high = 0, tables = 0;
  int inside = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const header = &info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + header->p_vaddr, end = start + header->p_memsz;
    if (header->p_type == PT_GNU_EH_FRAME) tables = start;
    if (header->p_type != PT_LOAD) continue;
    if (start < low) low = start;
    if (end > high) high = end;
    if (search->address >= start && search->address < end) inside = 1;
  }
  if (!inside) return 0;
  if (tables == 0) return -1;
  memset(search->result, 0, sizeof(*search->result));
  search->result->dlfo_map_start = (void*)low;
  search->result->dlfo_map_end = (void*)high;
  search->result->dlfo_eh_frame = (void*)tables;
  return 1;
}

HIDDEN int _dl_find_object(void* address, struct dl_find_object* result) {
  struct Search search = {(uintptr_t)address, result};
  return dl_iterate_phdr(look_at_object, &search) == 1 ? 0 : -1;
}
#endif
