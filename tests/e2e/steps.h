// What a test's program needs that goes step by step: it pauses where it can be looked at from outside, and ends when a
// call fails that must not. The test's side is stepped_world.h.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "shim/driver/cuda.h"

// Says so, and waits for a line on stdin.
inline void pause_here(const char* mark = "READY") {
  std::printf("%s\n", mark);
  std::fflush(stdout);
  std::string line;
  std::getline(std::cin, line);
}

inline void must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::printf("failed=%s %d\n", what, static_cast<int>(result));
  std::exit(1);
}
