// Runs a fuzz entry without libFuzzer: over its seeds and 20,000 mutations of them that are the same at each run, or
// over files. A child process does the work, so that whatever ends it is told with the number of the input.
//
//   fuzz_NAME_replay                 the seeds and the mutations
//   fuzz_NAME_replay --input N       only number N of them, in this process (for a debugger)
//   fuzz_NAME_replay FILE ...        files, such as what libFuzzer found
//   fuzz_NAME_replay --seeds FOLDER  writes the seeds there, for libFuzzer to start from
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/fuzz/fuzz.h"

namespace gpucap::fuzz {
namespace {

constexpr long kMutations = 20000;

class Mutator {
 public:
  explicit Mutator(unsigned long seed) : random_(seed) {}

  std::string mutate(const std::vector<std::string>& from, const std::vector<std::string>& pieces) {
    std::string text = from[roll(from.size())];
    const size_t edits = 1 + roll(8);
    for (size_t i = 0; i < edits; ++i) edit(from, pieces, &text);
    return text;
  }

 private:
  size_t roll(size_t sides) { return static_cast<size_t>(random_()) % sides; }

  void edit(const std::vector<std::string>& from, const std::vector<std::string>& pieces, std::string* text) {
    const std::string& piece = pieces[roll(pieces.size())];
    const std::string& other = from[roll(from.size())];
    const size_t at = roll(text->size() + 1);
    switch (roll(8)) {
      case 0:  // one bit
        if (at < text->size()) (*text)[at] = static_cast<char>((*text)[at] ^ (1 << roll(8)));
        break;
      case 1:  // one byte
        if (at < text->size()) (*text)[at] = static_cast<char>(random_());
        break;
      case 2:  // a byte more
        text->insert(at, 1, static_cast<char>(random_()));
        break;
      case 3:  // some less
        text->erase(at, 1 + roll(16));
        break;
      case 4:  // a piece more
        text->insert(at, piece);
        break;
      case 5: {  // a piece in place, where numbers lie
        const size_t aligned = at & ~size_t{3};
        if (aligned + piece.size() <= text->size()) text->replace(aligned, piece.size(), piece);
        break;
      }
      case 6:  // a part of another
        text->insert(at, other.substr(roll(other.size() + 1), roll(64)));
        break;
      default:  // the end cut off, now and then
        if (roll(4) == 0) text->resize(at);
        break;
    }
  }

  std::mt19937 random_;
};

// Each input has its own generator, so that it can be made alone.
std::string input(long number, const std::vector<std::string>& from, const std::vector<std::string>& bits) {
  const auto index = static_cast<size_t>(number);
  return index < from.size() ? from[index] : Mutator(static_cast<unsigned long>(number)).mutate(from, bits);
}

void run(const std::string& text) {
  // A block of exactly its size on the heap: a sanitizer sees a read past its end.
  const std::vector<uint8_t> bytes(text.begin(), text.end());
  static_cast<void>(LLVMFuzzerTestOneInput(bytes.data(), bytes.size()));
}

int run_all() {
  const std::vector<std::string> from = seeds(), bits = pieces();
  void* page = mmap(nullptr, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 2;
  auto* current = static_cast<volatile long*>(page);
  const long count = static_cast<long>(from.size()) + kMutations;
  const pid_t child = fork();
  if (child < 0) return 2;
  if (child == 0) {
    for (long i = 0; i < count; ++i) {
      *current = i;
      run(input(i, from, bits));
    }
    *current = count;
    std::exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status == 0 && *current == count) {
    std::printf("%ld inputs\n", count);
    return 0;
  }
  std::printf("ended by input %ld of %ld (status 0x%x): see it with --input %ld\n", *current, count,
              static_cast<unsigned>(status), *current);
  return 1;
}

int write_seeds(const std::string& folder) {
  int number = 0;
  for (const std::string& seed : seeds()) {
    std::ofstream file(folder + "/seed-" + std::to_string(number++), std::ios::binary);
    file << seed;
    if (!file.flush()) return 2;
  }
  return 0;
}

}  // namespace
}  // namespace gpucap::fuzz

int main(int count, char** arguments) {
  using namespace gpucap::fuzz;
  if (count == 1) return run_all();
  if (count == 3 && std::strcmp(arguments[1], "--seeds") == 0) return write_seeds(arguments[2]);
  if (count == 3 && std::strcmp(arguments[1], "--input") == 0) {
    run(input(std::atol(arguments[2]), seeds(), pieces()));
    return 0;
  }
  for (int i = 1; i < count; ++i) {
    std::ifstream file(arguments[i], std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "%s cannot be read\n", arguments[i]);
      return 2;
    }
    run(std::string(std::istreambuf_iterator<char>(file), {}));
  }
  return 0;
}
