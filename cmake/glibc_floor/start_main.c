/* The start of a program that has the floor (see compat.c). Since glibc 2.34 the C library runs a program's
 * constructors by itself, and the start code that a new compiler links in passes none; an older C library runs only
 * what it is handed. So the start code's call ends here, and goes on to the old version of the real function with the
 * constructors. A C library of either age then runs them once. Destructors are the loader's business in both. */
typedef int (*Main)(int, char**, char**);
typedef void (*Constructor)(int, char**, char**);

#if defined(__x86_64__)
__asm__(".symver libc_start_main_of_old, __libc_start_main@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver libc_start_main_of_old, __libc_start_main@GLIBC_2.17");
#else
#error "which version did __libc_start_main have on this processor in glibc 2.17?"
#endif
int libc_start_main_of_old(Main main, int argc, char** argv, Constructor init, void (*fini)(void),
                           void (*loader_fini)(void), void* stack_end);
int __libc_start_main(Main main, int argc, char** argv, Constructor init, void (*fini)(void), void (*loader_fini)(void),
                      void* stack_end);

extern Constructor __init_array_start[] __attribute__((visibility("hidden")));
extern Constructor __init_array_end[] __attribute__((visibility("hidden")));
void _init(void);

static void run_constructors(int argc, char** argv, char** environment) {
  _init();
  for (Constructor* each = __init_array_start; each < __init_array_end; ++each) (*each)(argc, argv, environment);
}

__attribute__((visibility("hidden"))) int __libc_start_main(Main main, int argc, char** argv, Constructor init,
                                                            void (*fini)(void), void (*loader_fini)(void),
                                                            void* stack_end) {
  (void)init;
  (void)fini;
  return libc_start_main_of_old(main, argc, argv, run_constructors, 0, loader_fini, stack_end);
}
