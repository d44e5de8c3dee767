// fake_truth PID [--peak]: the bytes that the fake machine holds for one process, a line a card; for shell tests, which
// stand outside of the process. Exit status 1 if the process never used the fake driver.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fake_cuda/cards.h"
#include "tests/fake_cuda/truth.h"

int main(int argc, char** argv) {
  const bool peak = argc == 3 && std::strcmp(argv[2], "--peak") == 0;
  const bool managed = argc == 3 && std::strcmp(argv[2], "--managed") == 0;
  if (argc < 2 || argc > 3 || (argc == 3 && !peak && !managed)) {
    std::fprintf(stderr, "usage: fake_truth PID [--peak | --managed]\n");
    return 2;
  }
  fake::Truth truth;
  if (!truth.open()) {
    std::perror("fake_truth: the state file");
    return 2;
  }
  for (int device = 0; device < fake::device_count(); ++device) {
    fake::TruthFigures figures;
    if (!truth.find(std::atoi(argv[1]), device, &figures)) {
      std::fprintf(stderr, "fake_truth: process %s has never used the fake driver\n", argv[1]);
      return 1;
    }
    std::printf("%llu\n", static_cast<unsigned long long>(peak      ? figures.peak
                                                          : managed ? figures.managed
                                                                    : figures.bytes));
  }
  return 0;
}
