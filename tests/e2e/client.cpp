// A program as users have them: knows nothing of gpucap. client MODE SCENARIO [arguments]; prints "name=value" lines,
// and between steps READY, then waits for a line on stdin, so that it can be looked at from outside.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cinttypes>
#include <iostream>
#include <thread>
#include <vector>

#include "tests/e2e/steps.h"
#include "tests/e2e/ways.h"

namespace {

DriverFunctions f;

void print_info(const char* prefix) {
  size_t free_bytes = 0, total_bytes = 0, device_bytes = 0;
  const CUresult result = f.cuMemGetInfo_v2(&free_bytes, &total_bytes);
  f.cuDeviceTotalMem_v2(&device_bytes, 0);
  std::printf("%s_info_result=%d\n%s_free=%zu\n%s_total=%zu\n%s_device_total=%zu\n", prefix, static_cast<int>(result),
              prefix, free_bytes, prefix, total_bytes, prefix, device_bytes);
}

int start() {
  CUcontext context = nullptr;
  int result = static_cast<int>(f.cuInit(0));
  std::printf("init=%d\n", result);
  result = static_cast<int>(f.cuDevicePrimaryCtxRetain(&context, 0));
  std::printf("context=%d\n", result);
  std::fflush(stdout);
  if (result == 0) f.cuCtxSetCurrent(context);
  return result;
}

// Takes pieces until refused, gives all back, takes one again.
int until_refused(const std::string& way_name, size_t bytes, size_t most) {
  if (start() != 0) return 0;
  const Way& way = ways().at(way_name);
  print_info("before");
  std::vector<Piece> pieces;
  CUresult result = CUDA_SUCCESS;
  Piece untouched;
  while (pieces.size() < most) {
    Piece piece{0x5eed, 0x5eed};
    result = way.take(f, bytes, &piece);
    untouched = piece;
    if (result != CUDA_SUCCESS) break;
    pieces.push_back(piece);
  }
  std::printf("taken=%zu\nresult=%d\nout_untouched=%d\n", pieces.size(), static_cast<int>(result),
              untouched.a == 0x5eed && untouched.b == 0x5eed ? 1 : 0);
  print_info("full");
  pause_here();
  int failed_frees = 0;
  for (const Piece& piece : pieces) failed_frees += way.give(f, piece, bytes) != CUDA_SUCCESS ? 1 : 0;
  f.cuCtxSynchronize();
  std::printf("failed_frees=%d\n", failed_frees);
  print_info("after");
  Piece piece;
  std::printf("again=%d\n", static_cast<int>(way.take(f, bytes, &piece)));
  way.give(f, piece, bytes);
  f.cuCtxSynchronize();
  pause_here();
  return 0;
}

// Many threads at the limit at once, in several ways.
int many_threads(size_t bytes, std::vector<std::string> names) {
  if (start() != 0) return 0;
  CUcontext context = nullptr;
  f.cuDevicePrimaryCtxRetain(&context, 0);
  // All hold what they have until all have asked: together far more than the cap, however they are scheduled.
  std::barrier together(8);
  std::atomic<int> odd_results{0}, granted{0}, refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      f.cuCtxSetCurrent(context);
      const Way& way = ways().at(names[static_cast<size_t>(t) % names.size()]);
      for (int round = 0; round < 60; ++round) {
        std::vector<Piece> mine;
        for (int i = 0; i < 6; ++i) {
          Piece piece;
          const CUresult result = way.take(f, bytes, &piece);
          if (result == CUDA_SUCCESS) {
            mine.push_back(piece);
            granted.fetch_add(1);
          } else if (result == CUDA_ERROR_OUT_OF_MEMORY) {
            refused.fetch_add(1);
          } else {
            odd_results.fetch_add(1);
          }
        }
        together.arrive_and_wait();
        for (const Piece& piece : mine)
          if (way.give(f, piece, bytes) != CUDA_SUCCESS) odd_results.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  f.cuCtxSynchronize();
  std::printf("granted=%d\nrefused=%d\nodd=%d\n", granted.load(), refused.load(), odd_results.load());
  print_info("after");
  pause_here();
  return 0;
}

// What the driver says to odd calls; printed so that two runs can be compared.
int odd_calls() {
  if (start() != 0) return 0;
  CUdeviceptr p = 0x5eed, q = 0;
  const auto say = [](const char* what, CUresult result) { std::printf("%s: %d\n", what, static_cast<int>(result)); };
  say("alloc to nowhere", f.cuMemAlloc_v2(nullptr, 4096));
  say("alloc nothing", f.cuMemAlloc_v2(&p, 0));
  say("alloc everything", f.cuMemAlloc_v2(&p, ~size_t{0}));
  std::printf("pointer %" PRIx64 "\n", static_cast<uint64_t>(p));
  say("free null", f.cuMemFree_v2(0));
  say("free garbage", f.cuMemFree_v2(0x1234));
  say("free async garbage", f.cuMemFreeAsync(0x1234, nullptr));
  say("async nothing", f.cuMemAllocAsync(&p, 0, nullptr));
  std::printf("pointer %" PRIx64 "\n", static_cast<uint64_t>(p));
  say("async to nowhere", f.cuMemAllocAsync(nullptr, 4096, nullptr));
  say("async everything", f.cuMemAllocAsync(&q, ~size_t{0}, nullptr));
  say("alloc", f.cuMemAlloc_v2(&p, 4 << 20));
  say("free inside", f.cuMemFree_v2(p + 4096));
  say("free on a stream", f.cuMemFreeAsync(p, nullptr));
  f.cuCtxSynchronize();
  say("free again", f.cuMemFree_v2(p));
  say("async", f.cuMemAllocAsync(&p, 4 << 20, nullptr));
  say("free plainly", f.cuMemFree_v2(p));
  f.cuCtxSynchronize();
  say("free again", f.cuMemFree_v2(p));
  size_t n = 7;
  say("info without free", f.cuMemGetInfo_v2(nullptr, &n));
  say("info without total", f.cuMemGetInfo_v2(&n, nullptr));
  say("info without both", f.cuMemGetInfo_v2(nullptr, nullptr));
  say("total to nowhere", f.cuDeviceTotalMem_v2(nullptr, 0));
  say("total of no device", f.cuDeviceTotalMem_v2(&n, 99));
  const CUmemAllocationProp prop = on_device(0);
  CUmemGenericAllocationHandle handle = 0x5eed;
  say("create odd size", f.cuMemCreate(&handle, 1000, &prop, 0));
  say("create to nowhere", f.cuMemCreate(nullptr, 2 << 20, &prop, 0));
  CUmemAllocationProp host = prop;
  host.location.type = static_cast<CUmemLocationType>(2);
  say("create in host memory", f.cuMemCreate(&handle, 2 << 20, &host, 0));
  say("unmap nothing", f.cuMemUnmap(0x7000000000, 2 << 20));
  say("array to nowhere", f.cuArray3DCreate_v2(nullptr, nullptr));
  say("retain no device", f.cuDevicePrimaryCtxRetain(nullptr, 0));
  CUcontext context = nullptr;
  say("retain no such device", f.cuDevicePrimaryCtxRetain(&context, 99));
  f.cuCtxSetCurrent(nullptr);
  say("alloc without context", f.cuMemAlloc_v2(&p, 4096));
  say("async without context", f.cuMemAllocAsync(&p, 4096, nullptr));
  say("info without context", f.cuMemGetInfo_v2(&n, &n));
  say("create without context", f.cuMemCreate(&handle, 2 << 20, &prop, 0));
  say("release without context", f.cuMemRelease(handle));
  pause_here();
  return 0;
}

// Whatever frees memory by the way: contexts that go, primary contexts released and reset, pools destroyed.
int lifetimes() {
  CUcontext primary = nullptr, second = nullptr;
  f.cuInit(0);
  f.cuDevicePrimaryCtxRetain(&primary, 0);
  f.cuCtxSetCurrent(primary);
  CUdeviceptr p = 0;
  f.cuMemAlloc_v2(&p, 100 << 20);
  std::printf("second=%d\n", static_cast<int>(f.cuCtxCreate_v2(&second, 0, 0)));
  for (int i = 0; i < 3; ++i) f.cuMemAlloc_v2(&p, 200 << 20);
  for (int i = 0; i < 100; ++i) f.cuMemAlloc_v2(&p, 1000);
  print_info("two");
  pause_here();
  f.cuCtxDestroy_v2(second);
  f.cuCtxSetCurrent(primary);
  print_info("one");
  pause_here();
  CUmemoryPool pool = own_pool(f);
  f.cuMemAllocFromPoolAsync(&p, 100 << 20, pool, nullptr);
  f.cuMemPoolDestroy(pool);
  pause_here();
  f.cuMemFreeAsync(p, nullptr);
  f.cuCtxSynchronize();
  pause_here();
  f.cuDevicePrimaryCtxReset_v2(0);
  pause_here();
  f.cuDevicePrimaryCtxRetain(&primary, 0);
  f.cuCtxSetCurrent(primary);
  f.cuMemAlloc_v2(&p, 300 << 20);
  pause_here();
  return 0;
}

// A child forked after the driver was used, as Python's workers are.
int forked() {
  if (start() != 0) return 0;
  CUdeviceptr p = 0;
  f.cuMemAlloc_v2(&p, 100 << 20);
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    CUdeviceptr q = 0;
    size_t n = 0;
    std::printf("child_alloc=%d\n", static_cast<int>(f.cuMemAlloc_v2(&q, 1 << 20)));
    std::printf("child_free=%d\n", static_cast<int>(f.cuMemFree_v2(p)));
    std::printf("child_info=%d\n", static_cast<int>(f.cuMemGetInfo_v2(&n, &n)));
    std::exit(7);  // runs destructors: they must not end the parent's figures
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child_status=%d\n", WEXITSTATUS(status));
  print_info("parent");
  pause_here();
  return 0;
}

// Whatever gpucap asks the driver while a stream is captured must not end the capture.
int capture() {
  if (start() != 0) return 0;
  CUstream captured = nullptr, other = nullptr;
  f.cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING);
  f.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING);
  CUdeviceptr p = 0, q = 0;
  std::printf("begin=%d\n", static_cast<int>(f.cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL)));
  std::printf("node=%d\n", static_cast<int>(f.cuMemAllocAsync(&p, 10 << 20, captured)));
  // On another stream: a pool that grows, up to the cap and a refusal, with all that is looked at before one.
  CUresult result = CUDA_SUCCESS;
  int taken = 0;
  for (; taken < 100 && result == CUDA_SUCCESS; ++taken) result = f.cuMemAllocAsync(&q, 100 << 20, other);
  std::printf("taken=%d\nresult=%d\n", taken, static_cast<int>(result));
  print_info("during");
  std::printf("node_free=%d\n", static_cast<int>(f.cuMemFreeAsync(p, captured)));
  CUgraph graph = nullptr;
  std::printf("end=%d\n", static_cast<int>(f.cuStreamEndCapture(captured, &graph)));
  pause_here();
  return 0;
}

int devices() {
  int count = 0;
  f.cuInit(0);
  f.cuDeviceGetCount(&count);
  std::printf("count=%d\n", count);
  for (int i = 0; i < count; ++i) {
    size_t bytes = 0;
    f.cuDeviceTotalMem_v2(&bytes, i);
    std::printf("total%d=%zu\n", i, bytes);
  }
  // Allocate on 0, make 1 current, free: device 0 goes down. And memory for 1 while 0 is current.
  CUcontext c[2] = {};
  for (int i = 0; i < count && i < 2; ++i) f.cuDevicePrimaryCtxRetain(&c[i], i);
  f.cuCtxSetCurrent(c[0]);
  CUdeviceptr p = 0;
  f.cuMemAlloc_v2(&p, 100 << 20);
  const CUmemAllocationProp prop = on_device(count > 1 ? 1 : 0);
  CUmemGenericAllocationHandle handle = 0;
  f.cuMemCreate(&handle, 64 << 20, &prop, 0);
  pause_here();
  f.cuCtxSetCurrent(c[count > 1 ? 1 : 0]);
  f.cuMemFree_v2(p);
  pause_here();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string mode = argv[1], scenario = argv[2];
  f = reach(mode);
  if (scenario == "until-refused")
    return until_refused(argv[3], std::strtoull(argv[4], nullptr, 10), std::strtoull(argv[5], nullptr, 10));
  if (scenario == "threads") return many_threads(std::strtoull(argv[3], nullptr, 10), {argv + 4, argv + argc});
  if (scenario == "odd") return odd_calls();
  if (scenario == "lifetimes") return lifetimes();
  if (scenario == "forked") return forked();
  if (scenario == "devices") return devices();
  if (scenario == "capture") return capture();
  if (scenario == "init-only") {
    std::printf("init=%d\n", static_cast<int>(f.cuInit(0)));
    pause_here();
    return 0;
  }
  return 2;
}
