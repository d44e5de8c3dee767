// What calls of the CUDA driver cost: one program, run by run_pairs.py with and without the preload. It knows nothing
// of gpucap. One JSON object a line on stdout.
//   driver_bench list
//   driver_bench run CASE [key=value ...] [rounds=N] [operations=N]   one line a round
//   driver_bench once [at_ns=T]       cuInit (at T on CLOCK_MONOTONIC), context and first allocation, each timed;
//                                     with init_only=1 cuInit alone
//   driver_bench serve [nvml=1]       lines on stdin: "open CASE [key=value ...]", "run OPERATIONS", "rss", "close"
// With nvml=1 the program starts NVML by itself, after cuInit: what that alone costs.
// Keys of a case: bytes, live, threads, fill, fill_to_share (see cases.h), and core: pin the thread to that core.
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "bench/cases.h"
#include "bench/driver.h"

namespace gpucap::bench {
namespace {

using Words = std::map<std::string, std::string>;

uint64_t number(const Words& words, const char* key, uint64_t otherwise) {
  const auto found = words.find(key);
  return found == words.end() ? otherwise : std::strtoull(found->second.c_str(), nullptr, 10);
}

Words parse(std::istream& text) {
  Words words;
  for (std::string word; text >> word;) {
    const size_t equals = word.find('=');
    if (equals != std::string::npos) words[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return words;
}

void pin(uint64_t core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<int>(core), &cores);
  if (sched_setaffinity(0, sizeof(cores), &cores) != 0) std::perror("driver_bench: sched_setaffinity");
}

uint64_t resident_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("Rss:", 0) == 0) return std::strtoull(line.c_str() + 4, nullptr, 10) * 1024;
  return 0;
}

class OpenCase {
 public:
  OpenCase(const std::string& name, const Words& words, CUcontext context) {
    if (words.count("core") != 0) pin(number(words, "core", 0));
    CaseOptions options;
    options.bytes = number(words, "bytes", 0);
    options.live = number(words, "live", 0);
    options.threads = number(words, "threads", 1);
    options.fill = number(words, "fill", 0);
    if (words.count("fill_to_share") != 0)
      options.fill_to_share = std::strtod(words.at("fill_to_share").c_str(), nullptr);
    options.context = context;
    for (const CaseKind& kind : all_cases()) {
      if (name != kind.name) continue;
      ballast_ = fill_card(options);  // first: what the case needs then comes on top
      case_ = kind.make(options);
    }
    if (case_ == nullptr) {
      std::fprintf(stderr, "driver_bench: there is no case '%s'\n", name.c_str());
      std::exit(2);
    }
    threads_ = options.threads;
  }
  [[nodiscard]] uint64_t filled() const { return ballast_ == nullptr ? 0 : ballast_->size(); }
  void run(const std::string& name, uint64_t operations) {
    const uint64_t taken = case_->run_ns(operations);
    const double each = static_cast<double>(taken) / static_cast<double>(operations * threads_);
    std::printf("{\"case\": \"%s\", \"operations\": %llu, \"ns\": %llu, \"ns_per_operation\": %.3f}\n", name.c_str(),
                static_cast<unsigned long long>(operations * threads_), static_cast<unsigned long long>(taken), each);
  }

 private:
  std::unique_ptr<Case> case_;
  std::unique_ptr<Ballast> ballast_;
  uint64_t threads_ = 1;
};

int list() {
  for (const CaseKind& kind : all_cases()) std::printf("{\"case\": \"%s\", \"what\": \"%s\"}\n", kind.name, kind.what);
  return 0;
}

int run(const std::string& name, const Words& words) {
  OpenCase open(name, words, start_driver());
  const uint64_t operations = number(words, "operations", 1000);
  for (uint64_t i = 0; i < number(words, "rounds", 5); ++i) open.run(name, operations);
  return 0;
}

int once(const Words& words) {
  const uint64_t at_ns = number(words, "at_ns", 0);
  const Driver& cuda = driver();
  while (now_ns() < at_ns) {
  }
  const uint64_t start = now_ns();
  check(cuda.cuInit(0), "cuInit");
  const uint64_t initialised = now_ns();
  if (number(words, "init_only", 0) != 0) {
    std::printf("{\"init_ns\": %llu}\n", static_cast<unsigned long long>(initialised - start));
    return 0;
  }
  if (number(words, "nvml", 0) != 0) start_nvml();
  start_driver();
  const uint64_t in_context = now_ns();
  CUdeviceptr first = 0;
  check(cuda.cuMemAlloc_v2(&first, 512), "cuMemAlloc");
  const uint64_t allocated = now_ns();
  std::printf(
      "{\"init_ns\": %llu, \"context_ns\": %llu, \"first_allocation_ns\": %llu, \"all_ns\": %llu}\n",
      static_cast<unsigned long long>(initialised - start), static_cast<unsigned long long>(in_context - initialised),
      static_cast<unsigned long long>(allocated - in_context), static_cast<unsigned long long>(allocated - start));
  return 0;
}

int serve(const Words& words) {
  const CUcontext context = start_driver();
  if (number(words, "nvml", 0) != 0) start_nvml();
  std::unique_ptr<OpenCase> open;
  std::string name;
  std::printf("{\"ready\": %d}\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream text(line);
    std::string verb;
    text >> verb;
    if (verb == "open") {
      open.reset();
      text >> name;
      open = std::make_unique<OpenCase>(name, parse(text), context);
      std::printf("{\"open\": \"%s\", \"filled\": %llu}\n", name.c_str(),
                  static_cast<unsigned long long>(open->filled()));
    } else if (verb == "run" && open != nullptr) {
      uint64_t operations = 0;
      text >> operations;
      open->run(name, operations == 0 ? 1 : operations);
    } else if (verb == "rss") {
      std::printf("{\"rss_bytes\": %llu}\n", static_cast<unsigned long long>(resident_bytes()));
    } else if (verb == "close") {
      open.reset();
      std::printf("{\"closed\": true}\n");
    } else {
      std::fprintf(stderr, "driver_bench: '%s' is not understood\n", line.c_str());
      return 2;
    }
    std::fflush(stdout);
  }
  return 0;
}

int main_with(int count, char** arguments) {
  const std::string verb = count > 1 ? arguments[1] : "";
  std::string rest;
  for (int i = verb == "run" ? 3 : 2; i < count; ++i) rest += std::string(arguments[i]) + ' ';
  std::istringstream text(rest);
  if (verb == "list") return list();
  if (verb == "run" && count > 2) return run(arguments[2], parse(text));
  if (verb == "once") return once(parse(text));
  if (verb == "serve") return serve(parse(text));
  std::fprintf(stderr,
               "usage: driver_bench list | run CASE [key=value ...] | once [at_ns=T] [nvml=1] | serve [nvml=1]\n");
  return 2;
}

}  // namespace
}  // namespace gpucap::bench

int main(int count, char** arguments) { return gpucap::bench::main_with(count, arguments); }
