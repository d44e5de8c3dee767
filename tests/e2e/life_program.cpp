// Programs that live and die in awkward ways: life_program SCENARIO [arguments]. Knows nothing of gpucap; the driver is
// linked, as in most programs. Prints results line by line, and READY where it can be looked at from outside.
#include "tests/e2e/life_program.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "shim/driver/cuda.h"
#include "tests/e2e/steps.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;
CUcontext context = nullptr;

void start() {
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    std::printf("cannot start\n");
    std::exit(9);
  }
}

// Takes pieces until refused; they stay.
int fill(size_t bytes) {
  int taken = 0;
  CUdeviceptr p = 0;
  CUresult result = CUDA_SUCCESS;
  while (taken < 100000 && (result = cuMemAlloc_v2(&p, bytes)) == CUDA_SUCCESS) ++taken;
  std::printf("taken=%d\nresult=%d\n", taken, static_cast<int>(result));
  return taken;
}

void churn_once(std::mt19937* random) {
  std::vector<std::pair<int, CUdeviceptr>> mine;
  for (int i = 0; i < 12; ++i) {
    const int way = static_cast<int>((*random)() % 3);
    const size_t bytes = way == 0 ? 1000 + (*random)() % 100000 : (1 + (*random)() % 40) * 2 * kMiB;
    CUdeviceptr p = 0;
    if ((way == 2 ? cuMemAllocAsync(&p, bytes, nullptr) : cuMemAlloc_v2(&p, bytes)) == CUDA_SUCCESS)
      mine.emplace_back(way, p);
  }
  for (const auto& [way, p] : mine) {
    if (way == 2) {
      cuMemFreeAsync(p, nullptr);
    } else {
      cuMemFree_v2(p);
    }
  }
}

// Four threads that allocate until somebody ends them.
int churn() {
  start();
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      cuCtxSetCurrent(context);
      std::mt19937 random(t);
      while (true) churn_once(&random);
    });
  }
  pause_here();
  std::exit(5);  // with the threads still at it
}

int hold(size_t bytes) {
  start();
  CUdeviceptr p = 0;
  std::printf("alloc=%d\n", static_cast<int>(cuMemAlloc_v2(&p, bytes)));
  pause_here();
  return 0;
}

int fill_and_wait(size_t bytes) {
  pause_here("WAITING");
  start();
  fill(bytes);
  pause_here();
  return 0;
}

// Files may not grow beyond 32 KiB while the driver is started; a signal that kills comes to who tries.
int small_files(size_t bytes) {
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = 32768;
  setrlimit(RLIMIT_FSIZE, &limit);
  start();
  limit.rlim_cur = before;
  setrlimit(RLIMIT_FSIZE, &limit);
  fill(bytes);
  pause_here();
  return 0;
}

int errno_at_start() {
  cuInit(0);
  pause_here("FIRST");
  errno = EDOM;
  const int result = static_cast<int>(cuDevicePrimaryCtxRetain(&context, 0));
  std::printf("retain=%d\nerrno_kept=%d\n", result, errno == EDOM ? 1 : 0);
  pause_here();
  return 0;
}

int exec_another(char** command, bool with_preload) {
  start();
  CUdeviceptr p = 0;
  cuMemAlloc_v2(&p, 100 * kMiB);
  pause_here("FIRST");
  if (!with_preload) unsetenv("LD_PRELOAD");
  execv(command[0], command);
  return 127;
}

// Short-lived threads allocate and go while others go on.
int passing_threads() {
  start();
  std::atomic<bool> done{false};
  std::atomic<int> odd{0};
  std::vector<std::thread> steady;
  for (unsigned t = 0; t < 3; ++t) {
    steady.emplace_back([t, &done] {
      cuCtxSetCurrent(context);
      std::mt19937 random(t);
      while (!done) churn_once(&random);
    });
  }
  for (int round = 0; round < 60; ++round) {
    std::vector<CUdeviceptr> pointers(5);
    std::vector<std::thread> passing;
    for (CUdeviceptr& p : pointers) {
      passing.emplace_back([&p, &odd] {
        cuCtxSetCurrent(context);
        if (cuMemAlloc_v2(&p, 3 * kMiB) != CUDA_SUCCESS) ++odd;
      });
    }
    for (std::thread& thread : passing) thread.join();
    for (const CUdeviceptr p : pointers)
      if (cuMemFree_v2(p) != CUDA_SUCCESS) ++odd;
  }
  done = true;
  for (std::thread& thread : steady) thread.join();
  cuCtxSynchronize();
  std::printf("odd=%d\n", odd.load());
  pause_here();
  return 0;
}

void say(const char* who) {
  CUdeviceptr p = 0;
  size_t free_bytes = 0, total_bytes = 0;
  const int taken = static_cast<int>(cuMemAlloc_v2(&p, 3 * kMiB));
  const int told = static_cast<int>(cuMemGetInfo_v2(&free_bytes, &total_bytes));
  const int given = static_cast<int>(cuMemFree_v2(p));
  std::printf("%s: alloc %d info %d free %d\n", who, taken, told, given);
  std::fflush(stdout);
}

struct SaysAtTheEnd {
  explicit SaysAtTheEnd(const char* name) : who(name) {}
  ~SaysAtTheEnd() {
    if (used) say(who);
  }
  const char* who;
  bool used = false;
};
SaysAtTheEnd of_the_program("program's static destructor");
thread_local SaysAtTheEnd of_a_thread("thread's destructor");

using LibraryTake = int (*)(CUdeviceptr*, size_t);

int endings(const char* library) {
  std::atexit([] { say("atexit before the first use"); });
  start();
  std::atexit([] { say("atexit after the first use"); });
  of_the_program.used = true;
  of_a_thread.used = true;
  std::thread([] {
    cuCtxSetCurrent(context);
    of_a_thread.used = true;
  }).join();
  const auto take = reinterpret_cast<LibraryTake>(dlsym(dlopen(library, RTLD_NOW | RTLD_LOCAL), "library_take"));
  CUdeviceptr p = 0;
  std::printf("library: %d\n", take(&p, 10 * kMiB));
  std::fflush(stdout);
  return 42;
}

int unload(const char* library) {
  start();
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  const auto take = reinterpret_cast<LibraryTake>(dlsym(handle, "library_take"));
  CUdeviceptr p = 0;
  std::printf("library: %d\n", take(&p, 10 * kMiB));
  dlclose(handle);
  std::printf("gone: %d\n", dlopen(library, RTLD_NOW | RTLD_NOLOAD) == nullptr ? 1 : 0);
  std::printf("free what it took: %d\n", static_cast<int>(cuMemFree_v2(p)));
  say("program");
  pause_here();
  return 0;
}

// A daemon: away from its parent, and with all descriptors closed although it has used CUDA already.
int daemon(const char* data_file) {
  if (fork() != 0) _exit(0);
  setsid();
  if (fork() != 0) _exit(0);
  start();
  CUdeviceptr p = 0;
  cuMemAlloc_v2(&p, 100 * kMiB);
  for (int descriptor = 3; descriptor < 1024; ++descriptor) close(descriptor);
  // Its own data now has every number that was ours.
  const int data = open(data_file, O_RDWR | O_CREAT | O_TRUNC, 0600);
  while (dup(data) >= 0 && fcntl(600, F_GETFD) < 0) {
  }
  static_cast<void>(!write(data, "my own data\n", 12));
  fill(100 * kMiB);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  cuMemFree_v2(p);
  cuMemAlloc_v2(&p, 100 * kMiB);
  static_cast<void>(!write(data, "the end\n", 8));
  int ours = 0;
  struct stat first {
  }, other{};
  fstat(data, &first);
  for (int descriptor = data; descriptor <= 600; ++descriptor)
    ours += fstat(descriptor, &other) == 0 && other.st_ino == first.st_ino ? 1 : 0;
  std::printf("pid=%d\nkept=%d\n", static_cast<int>(getpid()), ours == 601 - data ? 1 : 0);
  pause_here();
  return 0;
}

int spawning() {
  start();
  CUdeviceptr p = 0;
  cuMemAlloc_v2(&p, 100 * kMiB);
  int failures = 0, status = 0;
  for (int i = 0; i < 30; ++i) {
    const pid_t child = vfork();
    if (child == 0) {
      execl("/bin/true", "true", static_cast<char*>(nullptr));
      _exit(127);
    }
    failures += waitpid(child, &status, 0) != child || status != 0 ? 1 : 0;
    pid_t spawned = 0;
    char name[] = "true";
    char* arguments[] = {name, nullptr};
    failures += posix_spawn(&spawned, "/bin/true", nullptr, nullptr, arguments, environ) != 0 ? 1 : 0;
    failures += waitpid(spawned, &status, 0) != spawned || status != 0 ? 1 : 0;
    failures += std::system("exit 0") != 0 ? 1 : 0;
    cuMemFree_v2(p);
    failures += cuMemAlloc_v2(&p, 100 * kMiB) != CUDA_SUCCESS ? 1 : 0;
  }
  std::printf("failures=%d\n", failures);
  pause_here();
  return 0;
}

// The given command as another user, who has nothing of ours.
int run_as(const char* user, char** command) {
  const auto id = static_cast<uid_t>(std::atoi(user));
  if (setresgid(id, id, id) != 0 || setresuid(id, id, id) != 0) return 126;
  execv(command[0], command);
  return 127;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string scenario = argv[1];
  const char* argument = argc > 2 ? argv[2] : "";
  if (scenario == "churn") return churn();
  if (scenario == "hold") return hold(std::strtoull(argument, nullptr, 10));
  if (scenario == "fill") return fill_and_wait(std::strtoull(argument, nullptr, 10));
  if (scenario == "small-files") return small_files(std::strtoull(argument, nullptr, 10));
  if (scenario == "errno-at-start") return errno_at_start();
  if (scenario == "exec") return exec_another(argv + 2, true);
  if (scenario == "exec-bare") return exec_another(argv + 2, false);
  if (scenario == "passing-threads") return passing_threads();
  if (scenario == "endings") return endings(argument);
  if (scenario == "unload") return unload(argument);
  if (scenario == "daemon") return daemon(argument);
  if (scenario == "spawning") return spawning();
  if (scenario == "manners") return manners(argument);
  if (scenario == "as") return run_as(argument, argv + 3);
  return 2;
}
