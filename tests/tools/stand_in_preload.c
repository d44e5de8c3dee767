/* Stands in for libgpucap.so in the launcher's tests: a library that can be preloaded and leaves a trace of having
 * been. */
#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void loaded(void) {
  const char* path = getenv("STAND_IN_TRACE");
  FILE* file = path ? fopen(path, "a") : NULL;
  if (file == NULL) return;
  fputs("loaded\n", file);
  fclose(file);
}
