// Tries one way of taking device memory, for twice the cap, and gives everything back: one process a way, so that none
// disturbs another. It tells what it obtained, the error, whether the refused call left its out-parameter alone and the
// context in order; the harness reads the truth while it rests, at the start, full and freed.
//
//   every_way --list [--fake]                        the names, a line each
//   every_way WAY CAP [--fake] [--plugin PATH]
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include "report.h"
#include "ways/way.h"

namespace ways {

World& world() {
  static World the;
  return the;
}

Ways all_ways() {
  Ways ways;
  add_linear_ways(ways);
  add_pool_ways(ways);
  add_vmm_ways(ways);
  add_array_ways(ways);
  add_graph_ways(ways);
  add_context_ways(ways);
  add_module_ways(ways);
  add_shared_ways(ways);
  add_plugin_ways(ways);
  return ways;
}

namespace {

constexpr Value kUntouched = 0x5a5a5a5a5a5a5a5aull;

void require(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  report::check(what, false, "CUDA error " + std::to_string(result));
  std::exit(1);
}

// No error sticks, the context that was current still is, and it works.
void check_usable(const char* when) {
  CUcontext current = nullptr;
  const CUresult got = cuCtxGetCurrent(&current);
  const CUresult set = cuMemsetD8_v2(world().scratch, 0x11, 512);
  const CUresult synchronized = cuCtxSynchronize();
  report::check(
      std::string("the context is usable when ") + when,
      got == CUDA_SUCCESS && current == world().context && set == CUDA_SUCCESS && synchronized == CUDA_SUCCESS,
      "memset " + std::to_string(set) + ", synchronize " + std::to_string(synchronized));
}

struct Taken {
  std::vector<Value> values;
  CUresult error = CUDA_SUCCESS;
  bool untouched = true;
  bool same_error = true;  // of all threads that were refused
};

Taken take_until_refused(const Way& way) {
  const size_t most = way.most_takes != 0
                          ? way.most_takes
                          : std::max<size_t>(1, (2 * world().cap_bytes + way.step_bytes - 1) / way.step_bytes);
  Taken taken;
  std::mutex lock;
  std::atomic<size_t> asked{0};
  const auto work = [&] {
    if (way.threads > 1) cuCtxSetCurrent(world().context);
    while (asked.fetch_add(1) < most) {
      Value value = kUntouched;
      const CUresult result = way.take(&value);
      const std::lock_guard guard(lock);
      if (result == CUDA_SUCCESS) {
        taken.values.push_back(value);
        continue;
      }
      taken.untouched = taken.untouched && value == kUntouched;
      taken.same_error = taken.same_error && (taken.error == CUDA_SUCCESS || taken.error == result);
      taken.error = result;
      return;
    }
  };
  if (way.threads == 1) {
    work();
    return taken;
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < way.threads; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  return taken;
}

[[noreturn]] void skip(const std::string& what, CUresult result) {
  report::say("\"skip\": \"not offered here: " + what + " answers with CUDA error " + std::to_string(result) + "\"");
  std::exit(0);
}

CUresult give_back_all(const Way& way, const std::vector<Value>& values) {
  CUresult failed = CUDA_SUCCESS;
  // Last first: of limits that were raised in steps the first is the one to end with.
  for (auto it = values.rbegin(); it != values.rend(); ++it) {
    const CUresult answer = way.give_back(*it);
    if (answer != CUDA_SUCCESS) failed = answer;
  }
  if (cuCtxSynchronize() != CUDA_SUCCESS) failed = CUDA_ERROR_UNKNOWN;
  if (way.end) {
    const CUresult ended = way.end();
    if (ended != CUDA_SUCCESS) failed = ended;
  }
  return failed;
}

void fill_up_to(size_t room_bytes) {
  size_t free_bytes = 0, total_bytes = 0;
  CUdeviceptr ballast = 0;
  require(cuMemGetInfo_v2(&free_bytes, &total_bytes), "cuMemGetInfo");
  if (free_bytes > room_bytes + 2 * kMib)
    require(cuMemAlloc_v2(&ballast, (free_bytes - room_bytes) / (2 * kMib) * (2 * kMib)), "filling most of the cap");
}

// Before anything is measured: what the way needs, a first use, and most of the cap filled where it wants little room.
void make_ready(const Way& way) {
  if (way.begin) {
    const CUresult begun = way.begin();
    if (begun != CUDA_SUCCESS && way.optional) skip("what it needs", begun);
    require(begun, "making ready");
  }
  if (way.once_before) {
    Value value = 0;
    const CUresult result = way.take(&value);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY && way.optional) skip("its first call", result);
    if (result == CUDA_SUCCESS) give_back_all(way, {value});
  }
  require(cuCtxSynchronize(), "cuCtxSynchronize");
  if (way.room_bytes != 0) fill_up_to(way.room_bytes);
}

// A cap that refuses too early is as wrong as one that refuses too late.
size_t least(const Way& way) {
  if (way.least_bytes != 0) return way.least_bytes;
  // Blocks of 1 MiB + 1 B take twice what was asked for; limits and single launches take what they take.
  const bool can_be_said = way.room_bytes == 0 && way.most_takes == 0 && way.once_before && way.step_bytes <= kGib;
  return can_be_said ? world().cap_bytes / 4 : 0;
}

void judge(const Way& way, const Taken& taken) {
  const size_t obtained = taken.values.size() * way.step_bytes;
  report::fact("obtained_bytes", obtained);
  report::check("the cap can be used", obtained >= least(way), std::to_string(obtained) + " B obtained");
  report::fact("pieces", taken.values.size());
  report::fact("error", taken.error);
  const bool refused = taken.error == CUDA_ERROR_OUT_OF_MEMORY && taken.same_error;
  const std::string answer = "error " + std::to_string(taken.error);
  if (way.refusal == Refusal::kMust) {
    report::check("refused with CUDA_ERROR_OUT_OF_MEMORY", refused, answer);
  } else if (way.refusal == Refusal::kMay) {
    report::check("not refused, or with CUDA_ERROR_OUT_OF_MEMORY", refused || taken.error == CUDA_SUCCESS, answer);
  } else {
    report::check("not refused", taken.error == CUDA_SUCCESS, answer);
  }
  report::check("the refused call left its out-parameter alone", taken.untouched);
}

void run(const Way& way) {
  make_ready(way);
  report::ready("start");
  const Taken taken = take_until_refused(way);
  judge(way, taken);
  check_usable("full");
  report::ready("full");
  // Whatever was taken counts now for all other ways.
  CUdeviceptr next = 0;
  const CUresult next_answer = cuMemAlloc_v2(&next, kBlock);
  report::fact("next_error", next_answer);
  if (next_answer == CUDA_SUCCESS) cuMemFree_v2(next);
  const CUresult freed = give_back_all(way, taken.values);
  report::check("everything can be given back", freed == CUDA_SUCCESS, std::to_string(freed));
  check_usable("freed");
  report::ready("freed");
  if (taken.values.empty() || way.most_takes == 1 || way.kept_by_driver) return;
  Value value = 0;
  const CUresult again = way.take(&value);
  report::check("the way can be taken again", again == CUDA_SUCCESS, std::to_string(again));
  if (again == CUDA_SUCCESS) give_back_all(way, {value});
  check_usable("it was taken again");
}

}  // namespace
}  // namespace ways

int main(int argc, char** argv) {
  using namespace ways;
  if (argc > 1 && std::strncmp(argv[1], "--import-", 9) == 0) return import_and_hold(argc, argv);
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--fake") {
      world().fake = true;
    } else if (std::string(argv[i]) == "--plugin" && i + 1 < argc) {
      world().plugin_path = argv[++i];
    } else {
      words.emplace_back(argv[i]);
    }
  }
  world().self_path = "/proc/self/exe";
  world().cap_bytes = words.size() > 1 ? std::strtoull(words[1].c_str(), nullptr, 10) : 0;
  const Ways ways_here = all_ways();
  if (!words.empty() && words[0] == "--list") {
    for (const Way& way : ways_here) std::printf("%s\n", way.name.c_str());
    return 0;
  }
  const auto found = std::find_if(ways_here.begin(), ways_here.end(),
                                  [&](const Way& way) { return words.size() == 2 && way.name == words[0]; });
  if (found == ways_here.end()) {
    std::fprintf(stderr, "usage: every_way --list | WAY CAP [--fake] [--plugin PATH]\n");
    return 2;
  }
  setenv("CUDA_MODULE_LOADING", found->name.find("eager") != std::string::npos ? "EAGER" : "LAZY", 1);
  require(cuInit(0), "cuInit");
  require(cuDevicePrimaryCtxRetain(&world().context, 0), "cuDevicePrimaryCtxRetain");
  require(cuCtxSetCurrent(world().context), "cuCtxSetCurrent");
  require(cuMemAlloc_v2(&world().scratch, 512), "a first small allocation");
  run(*found);
  return 0;
}
