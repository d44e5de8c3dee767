// A member of a group that does what it is told on stdin, a command a line, and answers each with "<word> <result>
// <milliseconds>"; as a program of users it knows nothing of gpucap. Commands: start, stop, take WAY BYTES, give (the
// latest), give-all, and those of group_children.h. The milliseconds are without the time that the thread was ready to
// run and had no processor. "group_program stress SEED" is group_stress_program.cpp.
#include "tests/e2e/group_program.h"

#include <iostream>
#include <sstream>
#include <vector>

#include "tests/e2e/group_children.h"
#include "tests/e2e/ways.h"

namespace {

DriverFunctions f;

struct Held {
  std::string way;
  Piece piece;
  size_t bytes;
};
std::vector<Held> held;

int give() {
  if (held.empty()) return -1;
  const Held last = held.back();
  held.pop_back();
  const int result = static_cast<int>(ways().at(last.way).give(f, last.piece, last.bytes));
  f.cuCtxSynchronize();
  return result;
}

int do_it(const std::string& word, std::istringstream& rest) {
  if (word == "start") {
    CUcontext context = nullptr;
    if (const int result = static_cast<int>(f.cuInit(0)); result != 0) return result;
    const int result = static_cast<int>(f.cuDevicePrimaryCtxRetain(&context, 0));
    if (result == 0) f.cuCtxSetCurrent(context);
    return result;
  }
  if (word == "stop") return static_cast<int>(f.cuDevicePrimaryCtxRelease_v2(0));
  // Leaves everything as it is, but gpucap cannot be sure of that until it has looked.
  if (word == "unsettle") return static_cast<int>(f.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 0));
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
  std::string argument;
  rest >> argument;
  return make_child(word, argument);
}

}  // namespace

int main(int argc, char** argv) {
  f = reach("linked");
  if (argc > 2 && std::string(argv[1]) == "stress") return stress(f, static_cast<unsigned>(std::atoi(argv[2])));
  std::string line;
  const RunDelay delay;
  while (std::getline(std::cin, line)) {
    std::istringstream rest(line);
    std::string word;
    rest >> word;
    if (word == "quit") return 0;
    const uint64_t began_ns = now_ns(), delayed_ns = delay.read_ns();
    const int result = do_it(word, rest);
    const uint64_t took_ns = now_ns() - began_ns, without_ns = delay.read_ns() - delayed_ns;
    std::cout << word << " " << result << " " << (took_ns - (without_ns < took_ns ? without_ns : took_ns)) / 1000000
              << std::endl;
  }
  return 0;
}
