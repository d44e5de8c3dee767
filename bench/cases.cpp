// The workloads: see cases.h. Each loop holds the calls of one operation and nothing else.
#include "bench/cases.h"

#include <barrier>
#include <thread>

#include "bench/driver.h"

namespace gpucap::bench {
namespace {

constexpr uint64_t kSmall_bytes = 512;
constexpr uint64_t kFill_bytes = uint64_t{2} << 20;
constexpr uint64_t kLaunchesInARow = 200;  // fewer than the queue of a stream holds, so that no launch waits

CUstream make_stream() {
  CUstream stream = nullptr;
  check(driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  return stream;
}

uint64_t async_pairs_ns(CUstream stream, uint64_t bytes, uint64_t operations) {
  const Driver& cuda = driver();
  CUdeviceptr pointer = 0;
  const uint64_t start = now_ns();
  for (uint64_t i = 0; i < operations; ++i) {
    if (cuda.cuMemAllocAsync(&pointer, bytes, stream) != CUDA_SUCCESS) check(CUDA_ERROR_UNKNOWN, "cuMemAllocAsync");
    if (cuda.cuMemFreeAsync(pointer, stream) != CUDA_SUCCESS) check(CUDA_ERROR_UNKNOWN, "cuMemFreeAsync");
  }
  return now_ns() - start;
}

// cuMemAllocAsync and cuMemFreeAsync. One block lives throughout, so that the pool keeps its first step.
class AsyncPair : public Case {
 public:
  explicit AsyncPair(const CaseOptions& options)
      : bytes_(options.bytes != 0 ? options.bytes : uint64_t{1} << 20),
        stream_(make_stream()),
        live_(options.live + 1, kSmall_bytes, stream_, true) {
    check(driver().cuStreamSynchronize(stream_), "cuStreamSynchronize");
  }
  uint64_t run_ns(uint64_t operations) override {
    const uint64_t taken = async_pairs_ns(stream_, bytes_, operations);
    check(driver().cuStreamSynchronize(stream_), "cuStreamSynchronize");
    return taken;
  }

 private:
  uint64_t bytes_;
  CUstream stream_;
  Ballast live_;
};

class AsyncThreads : public Case {
 public:
  explicit AsyncThreads(const CaseOptions& options)
      : bytes_(options.bytes != 0 ? options.bytes : uint64_t{1} << 20),
        stream_(make_stream()),
        live_(options.live + 1, kSmall_bytes, stream_, true),
        meeting_(static_cast<std::ptrdiff_t>(options.threads) + 1) {
    for (uint64_t i = 0; i < options.threads; ++i) threads_.emplace_back([this, options] { work(options.context); });
  }
  ~AsyncThreads() override {
    operations_ = 0;
    meeting_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }
  uint64_t run_ns(uint64_t operations) override {
    operations_ = operations;
    meeting_.arrive_and_wait();
    const uint64_t start = now_ns();
    meeting_.arrive_and_wait();
    const uint64_t taken = now_ns() - start;
    check(driver().cuCtxSynchronize(), "cuCtxSynchronize");
    return taken;
  }

 private:
  void work(CUcontext context) {
    check(driver().cuCtxSetCurrent(context), "cuCtxSetCurrent");
    CUstream stream = make_stream();
    for (;;) {
      meeting_.arrive_and_wait();
      if (operations_ == 0) break;
      async_pairs_ns(stream, bytes_, operations_);
      meeting_.arrive_and_wait();
    }
    check(driver().cuStreamDestroy_v2(stream), "cuStreamDestroy");
  }

  uint64_t bytes_;
  CUstream stream_;
  Ballast live_;
  uint64_t operations_ = 0;
  std::barrier<> meeting_;
  std::vector<std::thread> threads_;
};

// cuMemAlloc and cuMemFree; one block of 512 B lives throughout, so that the first shared block is warm.
class LinearPair : public Case {
 public:
  LinearPair(const CaseOptions& options, uint64_t usual_bytes)
      : bytes_(options.bytes != 0 ? options.bytes : usual_bytes),
        live_(options.live + 1, kSmall_bytes, nullptr, false) {}
  uint64_t run_ns(uint64_t operations) override {
    const Driver& cuda = driver();
    CUdeviceptr pointer = 0;
    const uint64_t start = now_ns();
    for (uint64_t i = 0; i < operations; ++i) {
      if (cuda.cuMemAlloc_v2(&pointer, bytes_) != CUDA_SUCCESS) check(CUDA_ERROR_UNKNOWN, "cuMemAlloc");
      if (cuda.cuMemFree_v2(pointer) != CUDA_SUCCESS) check(CUDA_ERROR_UNKNOWN, "cuMemFree");
    }
    return now_ns() - start;
  }

 private:
  uint64_t bytes_;
  Ballast live_;
};

// One call again and again.
template <typename Call>
class Repeated : public Case {
 public:
  Repeated(Call call, uint64_t in_a_row) : call_(call), in_a_row_(in_a_row) {}
  uint64_t run_ns(uint64_t operations) override {
    uint64_t taken = 0;
    for (uint64_t done = 0; done < operations;) {
      const uint64_t now = operations - done < in_a_row_ ? operations - done : in_a_row_;
      const uint64_t start = now_ns();
      for (uint64_t i = 0; i < now; ++i) call_();
      taken += now_ns() - start;
      done += now;
      check(driver().cuCtxSynchronize(), "cuCtxSynchronize");
    }
    return taken;
  }

 private:
  Call call_;
  uint64_t in_a_row_;
};
template <typename Call>
std::unique_ptr<Case> repeat(Call call, uint64_t in_a_row = UINT64_MAX) {
  return std::make_unique<Repeated<Call>>(call, in_a_row);
}

std::unique_ptr<Case> memory_info(const CaseOptions&) {
  return repeat([] {
    size_t free_bytes = 0, total_bytes = 0;
    check(driver().cuMemGetInfo_v2(&free_bytes, &total_bytes), "cuMemGetInfo");
  });
}

std::unique_ptr<Case> address_lookup(const CaseOptions&) {
  return repeat([] {
    void* address = nullptr;
    CUdriverProcAddressQueryResult status{};
    check(driver().cuGetProcAddress_v2("cuMemAllocAsync", &address, 12000, 0, &status), "cuGetProcAddress");
  });
}

std::unique_ptr<Case> kernel_launch(const CaseOptions&) {
  CUfunction kernel = nullptr;
  load_empty_kernel(&kernel);
  const CUstream stream = make_stream();
  return repeat(
      [kernel, stream] {
        check(driver().cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr), "cuLaunchKernel");
      },
      kLaunchesInARow);
}

std::unique_ptr<Case> graph_launch(const CaseOptions&) {
  CUDA_KERNEL_NODE_PARAMS node_is{};
  load_empty_kernel(&node_is.func);
  node_is.gridDimX = node_is.gridDimY = node_is.gridDimZ = 1;
  node_is.blockDimX = node_is.blockDimY = node_is.blockDimZ = 1;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec runnable = nullptr;
  check(driver().cuGraphCreate(&graph, 0), "cuGraphCreate");
  check(driver().cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &node_is), "cuGraphAddKernelNode");
  check(driver().cuGraphInstantiateWithFlags(&runnable, graph, 0), "cuGraphInstantiate");
  const CUstream stream = make_stream();
  return repeat([runnable, stream] { check(driver().cuGraphLaunch(runnable, stream), "cuGraphLaunch"); },
                kLaunchesInARow);
}

std::unique_ptr<Case> copy(const CaseOptions& options) {
  const size_t bytes = options.bytes != 0 ? options.bytes : 4096;
  CUdeviceptr to = 0;
  check(driver().cuMemAlloc_v2(&to, bytes), "cuMemAlloc");
  const auto from = std::make_shared<std::vector<char>>(bytes);
  return repeat([to, from] { check(driver().cuMemcpyHtoD_v2(to, from->data(), from->size()), "cuMemcpyHtoD"); });
}

std::unique_ptr<Case> synchronise(const CaseOptions&) {
  const CUstream stream = make_stream();
  return repeat([stream] { check(driver().cuStreamSynchronize(stream), "cuStreamSynchronize"); });
}

}  // namespace

const std::vector<CaseKind>& all_cases() {
  static const std::vector<CaseKind> kinds = {
      {"async_pair", "cuMemAllocAsync + cuMemFreeAsync, 1 MiB",
       [](const CaseOptions& options) -> std::unique_ptr<Case> { return std::make_unique<AsyncPair>(options); }},
      {"async_threads", "the same on `threads` threads at once, each with its stream",
       [](const CaseOptions& options) -> std::unique_ptr<Case> { return std::make_unique<AsyncThreads>(options); }},
      {"small_pair", "cuMemAlloc + cuMemFree, 512 B from a warm block",
       [](const CaseOptions& options) -> std::unique_ptr<Case> { return std::make_unique<LinearPair>(options, 512); }},
      {"large_pair", "cuMemAlloc + cuMemFree, 4 MiB",
       [](const CaseOptions& options) -> std::unique_ptr<Case> {
         return std::make_unique<LinearPair>(options, uint64_t{4} << 20);
       }},
      {"memory_info", "cuMemGetInfo", memory_info},
      {"address_lookup", "cuGetProcAddress of a function that is hooked", address_lookup},
      {"kernel_launch", "launch of an empty kernel", kernel_launch},
      {"graph_launch", "launch of a graph without memory nodes", graph_launch},
      {"copy", "cuMemcpyHtoD, 4 KiB", copy},
      {"synchronise", "cuStreamSynchronize of an idle stream", synchronise},
  };
  return kinds;
}

Ballast::Ballast(uint64_t count, uint64_t bytes, CUstream stream, bool stream_ordered)
    : bytes_(bytes), stream_(stream), stream_ordered_(stream_ordered) {
  blocks_.reserve(count);
  while (blocks_.size() < count)
    if (!add()) check(CUDA_ERROR_OUT_OF_MEMORY, "a block that only lies there");
}

bool Ballast::add() {
  CUdeviceptr block = 0;
  const CUresult result =
      stream_ordered_ ? driver().cuMemAllocAsync(&block, bytes_, stream_) : driver().cuMemAlloc_v2(&block, bytes_);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return false;
  check(result, "a block that only lies there");
  blocks_.push_back(block);
  return true;
}

Ballast::~Ballast() {
  for (const CUdeviceptr block : blocks_)
    check(stream_ordered_ ? driver().cuMemFreeAsync(block, stream_) : driver().cuMemFree_v2(block), "free");
  if (stream_ordered_) check(driver().cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

std::unique_ptr<Ballast> fill_card(const CaseOptions& options) {
  if (options.fill == 0 && options.fill_to_share == 0) return nullptr;
  auto ballast = std::make_unique<Ballast>(options.fill, kFill_bytes, nullptr, false);
  while (options.fill_to_share != 0) {
    size_t free_bytes = 0, total_bytes = 0;
    check(driver().cuMemGetInfo_v2(&free_bytes, &total_bytes), "cuMemGetInfo");
    const double used = static_cast<double>(total_bytes - free_bytes + kFill_bytes);
    if (used > options.fill_to_share * static_cast<double>(total_bytes) || !ballast->add()) break;
  }
  return ballast;
}

}  // namespace gpucap::bench
