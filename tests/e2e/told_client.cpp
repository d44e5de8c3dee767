// A program that does what it is told on stdin, a command a line, and answers each with one line: "<word> <result>
// <milliseconds>". Knows nothing of gpucap. Commands: start, take WAY BYTES, give (the latest), give-all, info, fork,
// close-all, signal, quit.
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <sstream>
#include <vector>

#include "tests/e2e/ways.h"

namespace {

DriverFunctions f;

struct Held {
  std::string way;
  Piece piece;
  size_t bytes;
};
std::vector<Held> held;

int start() {
  CUcontext context = nullptr;
  if (const int result = static_cast<int>(f.cuInit(0)); result != 0) return result;
  const int result = static_cast<int>(f.cuDevicePrimaryCtxRetain(&context, 0));
  if (result == 0) f.cuCtxSetCurrent(context);
  return result;
}

int give() {
  if (held.empty()) return -1;
  const Held last = held.back();
  held.pop_back();
  const int result = static_cast<int>(ways().at(last.way).give(f, last.piece, last.bytes));
  f.cuCtxSynchronize();
  return result;
}

int do_it(const std::string& word, std::istringstream& rest) {
  if (word == "start") return start();
  if (word == "take") {
    std::string way;
    size_t bytes = 0;
    rest >> way >> bytes;
    Piece piece;
    const int result = static_cast<int>(ways().at(way).take(f, bytes, &piece));
    if (result == 0) held.push_back({way, piece, bytes});
    return result;
  }
  if (word == "give") return give();
  if (word == "give-all") {
    while (!held.empty())
      if (const int result = give(); result != 0) return result;
    return 0;
  }
  if (word == "info") {
    size_t free_bytes = 0, total_bytes = 0;
    const int result = static_cast<int>(f.cuMemGetInfo_v2(&free_bytes, &total_bytes));
    std::cout << "free=" << free_bytes << "\ntotal=" << total_bytes << "\n";
    return result;
  }
  if (word == "fork") {  // a child that uses what it inherited, and ends in the orderly way
    const pid_t child = fork();
    if (child == 0) {
      CUdeviceptr p = 0;
      f.cuMemAlloc_v2(&p, 1 << 20);
      std::exit(7);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  }
  if (word == "close-all") {  // as daemons do
    for (int fd = 3; fd < 4096; ++fd) close(fd);
    return 0;
  }
  if (word == "alarm") {  // a handler without SA_RESTART in so many milliseconds, as Python's for Ctrl-C
    long ms = 0;
    rest >> ms;
    struct sigaction action = {};
    action.sa_handler = [](int) {};
    sigaction(SIGALRM, &action, nullptr);
    const itimerval time = {{0, 0}, {ms / 1000, ms % 1000 * 1000}};
    return setitimer(ITIMER_REAL, &time, nullptr);
  }
  return -2;
}

}  // namespace

int main(int argc, char** argv) {
  f = reach(argc > 1 ? argv[1] : "direct");
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream rest(line);
    std::string word;
    rest >> word;
    if (word == "quit") return 0;
    const auto began = std::chrono::steady_clock::now();
    const int result = do_it(word, rest);
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began);
    std::cout << word << " " << result << " " << ms.count() << std::endl;
  }
  return 0;
}
