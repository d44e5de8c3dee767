/* A program as old as the C library it runs on: threads that look up the driver by dlopen and dlsym and allocate until
 * they are refused. Run by scripts/portability_test.sh and package_test.sh under a cap, with the library preloaded, in
 * user spaces of several ages. Prints the version of the C library, and what was granted; fails if that is nothing or
 * above its argument (MiB). */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { kThreads = 4, kSuccess = 0, kOutOfMemory = 2 };
static const size_t kBlockBytes = (size_t)32 << 20;

static int (*init)(unsigned);
static int (*retain_context)(void**, int);
static int (*set_context)(void*);
static int (*allocate)(unsigned long long*, size_t);
static uint64_t granted_bytes;
static int unexpected;

static void* take_until_refused(void* context) {
  unsigned long long pointer = 0;
  int status = set_context(context);
  while (status == kSuccess && (status = allocate(&pointer, kBlockBytes)) == kSuccess)
    __sync_fetch_and_add(&granted_bytes, kBlockBytes);
  if (status != kOutOfMemory) __sync_fetch_and_add(&unexpected, 1);
  return NULL;
}

static void* find(void* driver, const char* name) {
  void* function = dlsym(driver, name);
  if (function == NULL) {
    fprintf(stderr, "probe: %s\n", dlerror());
    exit(3);
  }
  return function;
}

int main(int argc, char** argv) {
  const uint64_t cap_bytes = argc > 1 ? strtoull(argv[1], NULL, 10) << 20 : 0;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) {
    fprintf(stderr, "probe: %s\n", dlerror());
    return 3;
  }
  *(void**)&init = find(driver, "cuInit");
  *(void**)&retain_context = find(driver, "cuDevicePrimaryCtxRetain");
  *(void**)&set_context = find(driver, "cuCtxSetCurrent");
  *(void**)&allocate = find(driver, "cuMemAlloc_v2");
  void* context = NULL;
  int status = init(0);
  if (status == kSuccess) status = retain_context(&context, 0);
  if (status != kSuccess) {
    fprintf(stderr, "probe: no context: error %d\n", status);
    return 3;
  }
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, take_until_refused, context);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  printf("glibc %s: %llu MiB granted to %d threads, %d unexpected errors\n", gnu_get_libc_version(),
         (unsigned long long)(granted_bytes >> 20), kThreads, unexpected);
  return granted_bytes == 0 || granted_bytes > cap_bytes || unexpected != 0;
}
