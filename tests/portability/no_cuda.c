/* A program that never heard of CUDA, for scripts/portability_test.sh: also built for 32 bits and for musl, where the
 * library has to be passed over without a word. */
#include <stdio.h>

int main(void) {
  puts("hello");
  return 0;
}
