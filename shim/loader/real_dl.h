// The dynamic loader as it is without us: dlsym and dlvsym of the C library, and handles of libraries that are already
// loaded. Found on first use, kept for the life of the process. Any thread. Nothing here is asked of the dynamic linker
// by name: libdl would be one more file for every program that never looks anything up.
#pragma once

#include <cstdint>

struct link_map;

namespace gpucap::loader {

using DlsymFunction = void* (*)(void* handle, const char* name);
using DlopenFunction = void* (*)(const char* file, int flags);
using DlvsymFunction = void* (*)(void* handle, const char* name, const char* version);

// Never null in a process with glibc's loader; calls through them see this library as the caller (for RTLD_NEXT).
DlsymFunction real_dlsym();
DlvsymFunction real_dlvsym();
DlopenFunction real_dlopen();

// A handle of a library that is loaded already, by soname; nullptr if it is not. Keeps a reference for good, so that
// what is found in it stays valid. Leaves dlerror() as it was not asked: a failed look-up is ours, not the program's.
void* handle_if_loaded(const char* soname);
// Loads it if need be, with RTLD_NOW | RTLD_LOCAL, never closed.
void* load_library(const char* soname);

// Takes back what a failed look-up of ours left for the program's dlerror().
void forget_error();

// What the loader knows about the object that holds `address`; nullptr if none of the program's namespace does.
const link_map* map_of(const void* address);

// The object that an address belongs to, as an opaque id for comparing; nullptr if none.
const void* object_of(const void* address);

// Whether the object that holds `address` came with the program: it sees what the whole program sees, and nothing else.
// False until this library's constructors have run.
bool was_there_at_start(const void* address);

// What a search through the object that holds `caller` and its dependencies finds; nullptr for the program itself.
void* find_from(const void* caller, const char* name);

// The definition of `name` that a search in link order finds after the object that holds `caller`, among those that
// came with the program and without this library; nullptr if there is none.
void* next_at_start(const void* caller, const char* name);

}  // namespace gpucap::loader
