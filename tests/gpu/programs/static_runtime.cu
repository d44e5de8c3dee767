// A program with CUDA's runtime linked into it (nvcc's default): no libcudart to interpose, one dlsym into the driver.
// argv[1]: the cap in bytes. Each of the runtime's ways to allocate, until refused; then everything freed and used
// again.
#include <cuda_runtime.h>

#include <functional>
#include <vector>

#include "report.h"

namespace {

constexpr size_t kBlock = size_t{64} << 20;
constexpr size_t kMostManaged = size_t{8} << 30;  // never more managed memory than a card has free

struct Way {
  const char* name;
  std::function<cudaError_t(void**)> allocate;
  std::function<cudaError_t(void*)> release;
};

std::vector<Way> ways() {
  return {
      {"cudaMalloc", [](void** p) { return cudaMalloc(p, kBlock); }, [](void* p) { return cudaFree(p); }},
      {"cudaMallocPitch",
       [](void** p) {
         size_t pitch = 0;
         return cudaMallocPitch(p, &pitch, 65536, kBlock / 65536);
       },
       [](void* p) { return cudaFree(p); }},
      {"cudaMallocAsync", [](void** p) { return cudaMallocAsync(p, kBlock, 0); },
       [](void* p) { return cudaFreeAsync(p, 0); }},
      {"cudaMallocManaged", [](void** p) { return cudaMallocManaged(p, kBlock); }, [](void* p) { return cudaFree(p); }},
      {"cudaMallocArray",
       [](void** p) {
         const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
         return cudaMallocArray(reinterpret_cast<cudaArray_t*>(p), &format, 4096, 4096);
       },
       [](void* p) { return cudaFreeArray(static_cast<cudaArray_t>(p)); }},
  };
}

void run(const Way& way, size_t cap) {
  const std::string name = way.name;
  std::vector<void*> blocks;
  cudaError_t error = cudaSuccess;
  const size_t most = 2 * cap < kMostManaged ? 2 * cap : kMostManaged;
  bool untouched = true;
  while (blocks.size() * kBlock < most) {
    void* block = &error;  // any value that no allocation has
    error = way.allocate(&block);
    if (error != cudaSuccess) {
      untouched = block == &error;
      break;
    }
    blocks.push_back(block);
  }
  const size_t obtained = blocks.size() * kBlock;
  report::fact(name + "_obtained_bytes", obtained);
  report::check(name + ": refused with cudaErrorMemoryAllocation", error == cudaErrorMemoryAllocation,
                cudaGetErrorName(error));
  report::check(name + ": between half of the cap and the cap was given", obtained >= cap / 2 && obtained <= cap,
                std::to_string(obtained));
  // What the runtime itself does to an out-parameter is its own business; it is told for the record.
  report::fact(name + "_out_parameter_untouched", untouched);
  report::check(name + ": the last error is that one", cudaGetLastError() == error);
  report::check(name + ": and it does not stick",
                cudaGetLastError() == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess);
  report::ready(name + " full");
  bool freed = true;
  for (void* block : blocks) freed = way.release(block) == cudaSuccess && freed;
  freed = cudaDeviceSynchronize() == cudaSuccess && freed;
  report::check(name + ": everything can be freed", freed);
  report::ready(name + " freed");
  void* again = nullptr;
  report::check(name + ": the next allocation works", way.allocate(&again) == cudaSuccess);
  if (again != nullptr) way.release(again);
  cudaDeviceSynchronize();
}

}  // namespace

int main(int argc, char** argv) {
  const size_t cap = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  cudaDeviceProp properties;
  report::check("cudaMemGetInfo works", cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess);
  report::check("cudaMemGetInfo shows the cap", total_bytes == cap && free_bytes <= total_bytes,
                std::to_string(total_bytes));
  report::check("cudaGetDeviceProperties works", cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
  report::check("cudaGetDeviceProperties shows the cap", properties.totalGlobalMem == cap,
                std::to_string(properties.totalGlobalMem));
  report::ready("start");
  for (const Way& way : ways()) run(way, cap);
  return 0;
}
