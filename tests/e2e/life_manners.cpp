// What a program can notice of itself around CUDA calls: limits, folder, umask, locale, errno, signals, threads,
// descriptors, environment. Prints all of it, so that a run with gpucap can be compared with one without.
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "shim/driver/cuda.h"
#include "tests/e2e/life_program.h"

namespace {

void handler(int) {}

int entries(const char* folder) {
  DIR* directory = opendir(folder);
  int count = 0;
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

std::string signals() {
  std::string text;
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  for (int s = 1; s < NSIG; ++s) {
    struct sigaction action {};
    if (sigaction(s, nullptr, &action) != 0) continue;
    const char* what = action.sa_handler == SIG_DFL   ? "default"
                       : action.sa_handler == SIG_IGN ? "ignored"
                       : action.sa_handler == handler ? "handled"
                                                      : "somebody's";
    if (action.sa_handler != SIG_DFL || sigismember(&mask, s) == 1)
      text += std::to_string(s) + " " + what + (sigismember(&mask, s) == 1 ? " blocked; " : "; ");
  }
  return text;
}

void show(const char* when) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  char folder[512] = "";
  static_cast<void>(!getcwd(folder, sizeof(folder)));
  const mode_t mask = umask(0);
  umask(mask);
  std::printf("%s: limit %llu, folder %s, umask %03o, locale %s, point %s, threads %d\n", when,
              static_cast<unsigned long long>(files.rlim_cur), folder, mask, setlocale(LC_ALL, nullptr),
              localeconv()->decimal_point, entries("/proc/self/task") - 2);
  std::printf("%s: signals %s\n", when, signals().c_str());
}

void show_environment(const char* when) {
  std::multiset<std::string> lines;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (strncmp(*entry, "GPUCAP_", 7) != 0 && strncmp(*entry, "LD_PRELOAD=", 11) != 0 &&
        strncmp(*entry, "FAKE_", 5) != 0)
      lines.insert(*entry);
  }
  for (const std::string& line : lines) std::printf("%s: %s\n", when, line.c_str());
}

void check(const char* call, CUresult result) {
  const int error_number = errno;
  std::printf("%s: %d, errno %d\n", call, static_cast<int>(result), error_number);
  errno = EDOM;
}

}  // namespace

int manners(const char* umask_text) {
  const rlimit few{24, 24};
  setrlimit(RLIMIT_NOFILE, &few);
  static_cast<void>(!chdir("/usr"));
  umask(static_cast<mode_t>(std::strtoul(umask_text, nullptr, 8)));
  setlocale(LC_ALL, "de_DE.UTF-8");
  struct sigaction action {};
  action.sa_handler = handler;
  for (const int s : {SIGUSR1, SIGSEGV, SIGTERM, SIGCHLD, SIGXFSZ}) sigaction(s, &action, nullptr);
  signal(SIGPIPE, SIG_DFL);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  sigaddset(&blocked, SIGALRM);
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  std::srand(7);
  show("before");
  CUcontext context = nullptr;
  CUdeviceptr p = 0, q = 0;
  size_t free_bytes = 0, total_bytes = 0;
  errno = EDOM;
  check("init", cuInit(0));
  check("retain", cuDevicePrimaryCtxRetain(&context, 0));
  check("current", cuCtxSetCurrent(context));
  check("alloc", cuMemAlloc_v2(&p, 100 << 20));
  check("async", cuMemAllocAsync(&q, 100 << 20, nullptr));
  check("too much", cuMemAlloc_v2(&p, size_t{1} << 40));
  check("info", cuMemGetInfo_v2(&free_bytes, &total_bytes));
  check("free", cuMemFreeAsync(q, nullptr));
  check("free garbage", cuMemFree_v2(0x1234));
  check("synchronise", cuCtxSynchronize());
  show("after");
  show_environment("after");
  std::printf("random %d\n", std::rand());
  std::printf("descriptors=%d\n", entries("/proc/self/fd"));
  return 0;
}
