// For the tests of the fake: runs a test's body in a forked process, so that each starts with a driver that nobody has
// initialised, its own environment and its own empty fake machine. The tests themselves never call the driver outside.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>

#include "tests/fake_cuda/api.h"
#include "tests/fake_cuda/truth.h"

namespace fake {

using Environment = std::initializer_list<std::pair<const char*, const char*>>;

// True if the body ran to its end without a failed expectation, which is printed.
template <class Body>
bool in_fresh_process(Environment environment, Body body) {
  const std::string state = "/tmp/fake-cuda-test." + std::to_string(::getpid());
  ::unlink(state.c_str());
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("FAKE_CUDA_STATE", state.c_str(), 1);
    ::unsetenv("CUDA_VISIBLE_DEVICES");
    for (const auto& [name, value] : environment) ::setenv(name, value, 1);
    body();
    std::fflush(nullptr);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::unlink(state.c_str());
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

template <class Body>
bool in_fresh_process(Body body) {
  return in_fresh_process({}, body);
}

// What the machine holds for a process, seen from outside of the driver.
inline TruthFigures figures(int card = 0, pid_t pid = ::getpid()) {
  Truth truth;
  TruthFigures found;
  if (!truth.open() || !truth.find(pid, card, &found)) ADD_FAILURE() << "no figures for process " << pid;
  return found;
}
inline uint64_t bytes(int card = 0) { return figures(card).bytes; }

}  // namespace fake

// cuInit and the primary context of a device, current on this thread.
inline CUcontext start(CUdevice device = 0) {
  CUcontext context = nullptr;
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  return context;
}
