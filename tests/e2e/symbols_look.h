// How a look-up went, in words that two runs share: "object:symbol", or what dlerror() said. Included by the program
// and by its plugin, so that each asks from its own place in memory: glibc answers RTLD_NEXT by who asks.
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace look {

inline std::string describe(void* address) {
  if (address == nullptr) return "null";
  Dl_info info{};
  if (dladdr(address, &info) == 0) return "nowhere";
  const char* slash = std::strrchr(info.dli_fname, '/');
  const std::string object = slash == nullptr ? info.dli_fname : slash + 1;
  if (info.dli_sname != nullptr && info.dli_saddr == address) return object + ":" + info.dli_sname;
  char offset[32];
  std::snprintf(offset, sizeof(offset), "+0x%zx",
                reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(info.dli_fbase));
  return object + offset;
}

inline void* const kNoHandle = reinterpret_cast<void*>(-2);  // a library that could not be opened

// `line` says in the output who asked where. The error is read even after a success, where there should be none.
inline void report(const std::string& line, void* found) {
  const char* error = dlerror();
  const std::string answer = describe(found);
  std::printf("%s = %s | %s\n", line.c_str(), answer.c_str(), error == nullptr ? "no error" : error);
}

inline void look_up(const char* who, const char* where, void* handle, const char* name) {
  if (handle == kNoHandle) return;
  dlerror();
  void* found = dlsym(handle, name);
  report(std::string(who) + " asks " + where + " for " + name, found);
}

inline void look_up_version(const char* who, const char* where, void* handle, const char* name, const char* version) {
  if (handle == kNoHandle) return;
  dlerror();
  void* found = dlvsym(handle, name, version);
  report(std::string(who) + " asks " + where + " for " + name + "@" + version, found);
}

// A library that is loaded already, under its soname.
inline void* handle_of(const char* soname) {
  void* handle = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
  return handle == nullptr ? kNoHandle : handle;
}

// Everything that one object asks of one stage of the process.
inline void look_around(const char* who, void* own) {
  const char* const names[] = {"malloc",
                               "puts",
                               "cuInit",
                               "cuMemAlloc_v2",
                               "cuMemAlloc",
                               "cuMemFree_v2",
                               "cuCtxGetCurrent",
                               "cuGetProcAddress_v2",
                               "cudaMalloc",
                               "cudaMemGetInfo",
                               "curl_easy_init",
                               "cublasCreate_v2",
                               "cu_own",
                               "cudaOwn",
                               "cu",
                               "cuNoSuchFunction",
                               "cudaNoSuchThing",
                               "noSuchThing"};
  struct Place {
    const char* name;
    void* handle;
  };
  const Place places[] = {{"default", RTLD_DEFAULT},
                          {"next", RTLD_NEXT},
                          {"the program", dlopen(nullptr, RTLD_LAZY)},
                          {"itself", own},
                          {"libc", handle_of("libc.so.6")},
                          {"the driver", handle_of("libcuda.so.1")},
                          {"the runtime", handle_of("libcudart.so.12")}};
  for (const Place& place : places) {
    for (const char* name : names) look_up(who, place.name, place.handle, name);
    look_up(who, place.name, place.handle, names[3]);  // the same thread, the same name, again
    look_up_version(who, place.name, place.handle, "cuInit", "NO_SUCH_VERSION");
    look_up_version(who, place.name, place.handle, "cudaMalloc", "libcudart.so.12");
#ifdef __x86_64__
    look_up_version(who, place.name, place.handle, "memcpy", "GLIBC_2.14");
    look_up_version(who, place.name, place.handle, "memcpy", "GLIBC_2.2.5");
#endif
    look_up_version(who, place.name, place.handle, "puts", "NO_SUCH_VERSION");
  }
}

}  // namespace look
