// The named steps of the group's bookkeeping (wire/steps.h), as the test build of the library takes them. Part of
// libgpucap_testing.so alone, never of what users get; called from any thread, allocates nothing.
//   GPUCAP_TEST_KILL_AT=name[:n]    the process kills itself at the n-th pass (1)
//   GPUCAP_TEST_STOP_AT=name        it stops there, as by SIGSTOP, while the file GPUCAP_TEST_STOP_FILE exists
//   GPUCAP_TEST_JITTER=n            at about one pass of n the thread naps there, so that others come in between
//   GPUCAP_TEST_RECORD=path         every name that is passed is added to the file, a line each
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<int> passed{0};

bool is_here(const char* wanted, const char* name, int* times) {
  if (wanted == nullptr) return false;
  const size_t length = strlen(name);
  if (strncmp(wanted, name, length) != 0) return false;
  const char* rest = wanted + length;
  // Names have single colons, and "a:b" must not match "a".
  *times = 1;
  if (*rest == '\0') return true;
  if (*rest != ':' || rest[1] < '0' || rest[1] > '9') return false;
  *times = atoi(rest + 1);
  return true;
}

void nap_sometimes(unsigned one_of) {
  static std::atomic<unsigned> state{static_cast<unsigned>(getpid())};
  const unsigned mixed = state.fetch_add(0x9e3779b9u) * 0x85ebca6bu;
  if (one_of == 0 || (mixed ^ mixed >> 15) % one_of != 0) return;
  const timespec time = {0, 20'000};
  nanosleep(&time, nullptr);
}

void record(const char* path, const char* name) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  char line[80];
  const size_t length = strnlen(name, sizeof(line) - 1);
  memcpy(line, name, length);
  line[length] = '\n';
  static_cast<void>(!write(fd, line, length + 1));
  close(fd);
}

}  // namespace

extern "C" void gpucap_test_step(const char* name) {
  const int saved = errno;
  int times = 1;
  if (is_here(getenv("GPUCAP_TEST_KILL_AT"), name, &times) && passed.fetch_add(1) + 1 == times) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
  }
  const char* stop_file = getenv("GPUCAP_TEST_STOP_FILE");
  if (stop_file != nullptr && is_here(getenv("GPUCAP_TEST_STOP_AT"), name, &times) && access(stop_file, F_OK) == 0)
    kill(getpid(), SIGSTOP);
  if (const char* jitter = getenv("GPUCAP_TEST_JITTER")) nap_sometimes(static_cast<unsigned>(atoi(jitter)));
  if (const char* path = getenv("GPUCAP_TEST_RECORD")) record(path, name);
  errno = saved;
}
