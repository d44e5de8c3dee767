// A program linked against libcuda alone takes memory in every way that the driver offers, each until refused, and
// gives it back. argv[1]: the cap in bytes. For each way it tells what it obtained, the error, and that the
// out-parameter of the refused call was left alone; the harness reads the truth while it rests, full and freed.
//
//   driver_api CAP ANSWER      ANSWER: what `driver_api --first-spelling` printed without gpucap
//   driver_api --first-spelling
//
// Today's drivers may turn the first spelling of cuMemAlloc down (they do on 64-bit contexts): then it must be turned
// down with the same answer under gpucap, and is skipped by name.
#include <algorithm>

#include "driver_ways.h"
#include "report.h"

namespace {

constexpr unsigned long long kUntouched = 0x5a5a5a5a5a5a5a5aull;

void require(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  report::check(what, false, "CUDA error " + std::to_string(result));
  std::exit(1);
}

CUresult first_spelling_answers() {
  unsigned long long value = 0;
  for (const Way& way : driver_ways())
    if (way.narrow) return way.take(&value);
  return CUDA_ERROR_NOT_FOUND;
}

void run(const Way& way, size_t cap, CUresult without_gpucap) {
  std::vector<unsigned long long> taken;
  CUresult result = CUDA_SUCCESS;
  unsigned long long value = kUntouched;
  // Half as much again as the cap is enough to see it broken, and never more than a card has free.
  const size_t most = std::min(cap + cap / 2, size_t{8} << 30);
  while (taken.size() * way.step_bytes < most) {
    value = kUntouched;
    result = way.take(&value);
    if (result != CUDA_SUCCESS) break;
    taken.push_back(value);
  }
  if (taken.empty() && way.optional && result != CUDA_ERROR_OUT_OF_MEMORY) {
    report::fact("SKIPPED " + way.name + ": the driver's answer to its first call was", result);
    report::check(way.name + ": turned down as without gpucap", !way.narrow || result == without_gpucap,
                  std::to_string(result) + " instead of " + std::to_string(without_gpucap));
    return;
  }
  const size_t obtained = taken.size() * way.step_bytes;
  report::fact(way.name + ": obtained_bytes", obtained);
  report::fact(way.name + ": error", result);
  report::check(way.name + ": refused with CUDA_ERROR_OUT_OF_MEMORY", result == CUDA_ERROR_OUT_OF_MEMORY,
                "error " + std::to_string(result) + " after " + std::to_string(obtained) + " B");
  report::check(way.name + ": the out-parameter is untouched", value == kUntouched || result == CUDA_SUCCESS);
  report::check(way.name + ": no more than the cap was given", obtained <= cap, std::to_string(obtained));
  const size_t least = way.narrow ? cap / 8 : cap / 4;  // blocks of 1 MiB + 1 B take twice what was asked for
  report::check(way.name + ": the cap can be used", obtained >= least, std::to_string(obtained));
  report::ready(way.name + " full");
  CUresult freed = CUDA_SUCCESS;
  for (const unsigned long long each : taken) {
    const CUresult answer = way.give_back(each);
    if (answer != CUDA_SUCCESS) freed = answer;
  }
  if (cuCtxSynchronize() != CUDA_SUCCESS) freed = CUDA_ERROR_UNKNOWN;
  report::check(way.name + ": everything can be given back", freed == CUDA_SUCCESS, std::to_string(freed));
  report::ready(way.name + " freed");
  value = 0;
  const CUresult again = way.take(&value);
  report::check(way.name + ": the next allocation works", again == CUDA_SUCCESS, std::to_string(again));
  if (again == CUDA_SUCCESS) way.give_back(value);
  cuCtxSynchronize();
}

}  // namespace

int main(int argc, char** argv) {
  const bool first_spelling = argc > 1 && std::string(argv[1]) == "--first-spelling";
  const size_t cap = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  const auto without_gpucap = static_cast<CUresult>(argc > 2 ? std::atoi(argv[2]) : 0);
  require(cuInit(0), "cuInit");
  CUdevice device = 0;
  CUcontext context = nullptr;
  require(cuDeviceGet(&device, 0), "cuDeviceGet");
  require(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  require(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  if (first_spelling) {
    std::printf("%d\n", first_spelling_answers());
    return 0;
  }
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  require(cuMemGetInfo_v2(&free_bytes, &total_bytes), "cuMemGetInfo");
  report::check("cuMemGetInfo shows the cap", total_bytes == cap && free_bytes <= total_bytes,
                std::to_string(total_bytes));
  require(cuDeviceTotalMem_v2(&total_bytes, device), "cuDeviceTotalMem");
  report::check("cuDeviceTotalMem shows the cap", total_bytes == cap, std::to_string(total_bytes));
  const std::vector<Way> ways = driver_ways();
  // The driver allocates a little for itself the first time that some of these are used: let it, before the first look.
  for (const Way& way : ways) {
    unsigned long long value = 0;
    if (way.take(&value) == CUDA_SUCCESS) way.give_back(value);
  }
  cuCtxSynchronize();
  report::ready("start");
  for (const Way& way : ways) run(way, cap, without_gpucap);
  return 0;
}
