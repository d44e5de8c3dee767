// Every way by which a program can take device memory from the driver directly, each as "take one" and "give it back".
// Used by driver_api.cpp, one way after the other; has no state but the pool and the stream that some ways need.
#pragma once

#include <functional>
#include <string>
#include <vector>

// The _v2 names are meant: without this cuda.h's macros would hide the old spellings beside them.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

struct Way {
  std::string name;
  size_t step_bytes;  // asked for by one call
  std::function<CUresult(unsigned long long*)> take;
  std::function<CUresult(unsigned long long)> give_back;
  bool optional = false;  // the driver may not offer it at all: then its first call fails, and it is skipped by name
  bool narrow = false;    // its pointers have 32 bits, so the driver may run out of addresses before the cap is reached
};

// Needs a current context on device 0.
std::vector<Way> driver_ways();
