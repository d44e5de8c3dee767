// What keeps the library alone in a process: the few functions for which it would otherwise bring in the C++ runtime
// library's exceptions, locales and demangler (some 1600 relocations, seven constructors and a buffer of 72 KiB at the
// start of every program) or ask for libpthread.so.0 (one more file to open and map). Nothing here is ever called by us
// on purpose but the allocation behind a log line and the last function; the others stand where headers refer to errors
// that cannot happen in a library without exceptions. All of them are weak: where another compiler's C++ library is
// linked in all the same, for something that is not here, its own take their place. Linked into libgpucap.so only,
// exported to nobody.
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <typeinfo>

#include "shim/loader/elf_symbols.h"

#define GPUCAP_STAND_IN __attribute__((weak))

GPUCAP_STAND_IN void* operator new(size_t bytes) {
  void* memory = malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) abort();
  return memory;
}
GPUCAP_STAND_IN void operator delete(void* memory) noexcept { free(memory); }
GPUCAP_STAND_IN void operator delete(void* memory, size_t) noexcept { free(memory); }

namespace std {

GPUCAP_STAND_IN void __throw_bad_alloc() { abort(); }
GPUCAP_STAND_IN void __throw_bad_array_new_length() { abort(); }
GPUCAP_STAND_IN void __throw_bad_function_call() { abort(); }
GPUCAP_STAND_IN void __throw_invalid_argument(const char*) { abort(); }
GPUCAP_STAND_IN void __throw_length_error(const char*) { abort(); }
GPUCAP_STAND_IN void __throw_logic_error(const char*) { abort(); }
GPUCAP_STAND_IN void __throw_out_of_range(const char*) { abort(); }
GPUCAP_STAND_IN void __throw_out_of_range_fmt(const char*, ...) { abort(); }
GPUCAP_STAND_IN void __throw_system_error(int) { abort(); }
GPUCAP_STAND_IN void terminate() noexcept { abort(); }

// Only asked where there is type information; we have none, and the answer without it is the address alone.
GPUCAP_STAND_IN bool _Sp_make_shared_tag::_S_eq(const type_info&) noexcept { return false; }

}  // namespace std

extern "C" {

// By what the C library tells whose handlers at fork and at exit are whose: nobody's, for the library is never
// unloaded.
extern void* const __dso_handle;
void* const __dso_handle = nullptr;

GPUCAP_STAND_IN void __cxa_pure_virtual() { abort(); }

// Destructors and what() of std::exception and std::runtime_error, which tables of error classes that nobody makes
// refer to.
GPUCAP_STAND_IN void _ZNSt9exceptionD1Ev() { abort(); }
GPUCAP_STAND_IN void _ZNSt9exceptionD2Ev() { abort(); }
GPUCAP_STAND_IN void _ZNSt13runtime_errorD1Ev() { abort(); }
GPUCAP_STAND_IN void _ZNSt13runtime_errorD2Ev() { abort(); }
GPUCAP_STAND_IN void _ZNKSt13runtime_error4whatEv() { abort(); }

// For fmt, which rounds with it; only GCC's optimiser does without libm's.
GPUCAP_STAND_IN double ceil(double value) noexcept {
  constexpr double kAllWhole = 4503599627370496;  // from here on a double has no fraction
  if (!(value > -kAllWhole && value < kAllWhole)) return value;
  const auto whole = static_cast<double>(static_cast<long long>(value));
  return whole < value ? whole + 1 : whole;
}

// Until glibc 2.34 in libpthread, which a program with the driver always has, and which may come later than we do.
// Without it there is one thread, and no mutex can be taken.
GPUCAP_STAND_IN int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  using Function = int (*)(pthread_mutex_t*);
  static std::atomic<Function> real{nullptr};
  Function function = real.load(std::memory_order_relaxed);
  if (function == nullptr) {
    constexpr const char* kHomes[] = {"libc.so", "libpthread.so", "libc-2.", "libpthread-2."};
    function = reinterpret_cast<Function>(
        gpucap::loader::find_in_loaded_object("pthread_mutex_trylock", kHomes, sizeof(kHomes) / sizeof(kHomes[0])));
    real.store(function, std::memory_order_relaxed);  // every thread finds the same
  }
  return function == nullptr ? 0 : function(mutex);
}

}  // extern "C"
