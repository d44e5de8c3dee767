// Code and what comes with it: modules and libraries with large __device__ arrays, and kernels that make the driver
// take memory when they are first launched (local memory, the malloc heap, the printf fifo).
#include <cstdlib>

#include "way.h"

namespace ways {
namespace {

constexpr size_t kArray = 256 * kMib;
const char kHeader[] = ".version 6.0\n.target sm_70\n.address_size 64\n";

// Code with a __device__ array: as PTX, or as the fake driver writes it.
std::string with_array(size_t bytes) {
  if (world().fake) return "FAKE code=" + std::to_string(bytes) + " kernels=hungry";
  return std::string(kHeader) + ".visible .global .align 4 .b8 big[" + std::to_string(bytes) +
         "];\n.visible .entry hungry(.param .u64 out)\n{\n .reg .b64 %rd<4>;\n .reg .b32 %r<2>;\n mov.u64 %rd1, big;\n"
         " ld.global.u32 %r1, [%rd1];\n ld.param.u64 %rd2, [out];\n cvta.to.global.u64 %rd3, %rd2;\n"
         " st.global.u32 [%rd3], %r1;\n ret;\n}\n";
}

// A kernel with a local array of this size, indexed by a parameter so that no compiler can do without it.
std::string with_local(size_t bytes) {
  if (world().fake) return "FAKE code=4096 local=" + std::to_string(bytes) + " kernels=hungry";
  return std::string(kHeader) +
         ".visible .entry hungry(.param .u64 out, .param .u32 where)\n{\n .local .align 4 .b8 frame[" +
         std::to_string(bytes) +
         "];\n .reg .b64 %rd<8>;\n .reg .b32 %r<4>;\n ld.param.u32 %r1, [where];\n cvt.u64.u32 %rd1, %r1;\n"
         " mov.u64 %rd2, frame;\n add.u64 %rd3, %rd2, %rd1;\n st.local.u32 [%rd3], %r1;\n ld.local.u32 %r2, [%rd2+4];\n"
         " ld.param.u64 %rd4, [out];\n cvta.to.global.u64 %rd5, %rd4;\n st.global.u32 [%rd5], %r2;\n ret;\n}\n";
}

const char kWithMalloc[] =
    ".extern .func (.param .b64 result) malloc(.param .b64 size);\n"
    ".visible .entry hungry(.param .u64 out, .param .u32 where)\n{\n .reg .b64 %rd<5>;\n mov.u64 %rd1, 1024;\n {\n"
    "  .param .b64 size;\n  st.param.b64 [size], %rd1;\n  .param .b64 result;\n  call.uni (result), malloc, (size);\n"
    "  ld.param.b64 %rd2, [result];\n }\n ld.param.u64 %rd3, [out];\n cvta.to.global.u64 %rd4, %rd3;\n"
    " st.global.u64 [%rd4], %rd2;\n ret;\n}\n";

const char kWithPrintf[] =
    ".extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 values);\n"
    ".global .align 1 .b8 text[2] = {10, 0};\n"
    ".visible .entry hungry(.param .u64 out, .param .u32 where)\n{\n .reg .b64 %rd<4>;\n .reg .b32 %r<2>;\n"
    " mov.u64 %rd1, text;\n cvta.global.u64 %rd2, %rd1;\n mov.u64 %rd3, 0;\n {\n  .param .b64 format;\n"
    "  st.param.b64 [format], %rd2;\n  .param .b64 values;\n  st.param.b64 [values], %rd3;\n  .param .b32 result;\n"
    "  call.uni (result), vprintf, (format, values);\n  ld.param.b32 %r1, [result];\n }\n ret;\n}\n";

CUresult unload_module(Value value) { return cuModuleUnload(reinterpret_cast<CUmodule>(value)); }
CUresult unload_library(Value value) { return cuLibraryUnload(reinterpret_cast<CUlibrary>(value)); }

CUresult launch(CUmodule module) {
  CUfunction function = nullptr;
  CUresult result = cuModuleGetFunction(&function, module, "hungry");
  if (result != CUDA_SUCCESS) return result;
  CUdeviceptr out = world().scratch;
  unsigned where = 0;
  void* parameters[] = {&out, &where};
  result = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
  return result != CUDA_SUCCESS ? result : synchronize();
}

// A module a take; its array's address is asked for, since a lazy driver allocates only then.
Way modules(const std::string& name, const char* loading) {
  Way way;
  way.name = name;
  way.step_bytes = kArray;
  way.begin = [loading] {
    const char* set = std::getenv("CUDA_MODULE_LOADING");  // main() set it before cuInit
    return set != nullptr && std::string(set) == loading ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
  };
  way.take = [](Value* out) {
    static const std::string image = with_array(kArray);
    auto* module = reinterpret_cast<CUmodule>(*out);
    CUresult result = cuModuleLoadData(&module, image.c_str());
    if (result == CUDA_SUCCESS && !world().fake) {
      CUdeviceptr address = 0;
      size_t bytes = 0;
      result = cuModuleGetGlobal_v2(&address, &bytes, module, "big");
      if (result != CUDA_SUCCESS) {
        cuModuleUnload(module);
        return result;
      }
    }
    *out = reinterpret_cast<Value>(module);
    return result;
  };
  way.give_back = unload_module;
  return way;
}

// A library is loaded into a context when something in it is first asked for.
Way libraries() {
  Way way;
  way.name = "cuLibraryLoadData + first use";
  way.step_bytes = kArray;
  way.take = [](Value* out) {
    static const std::string image = with_array(kArray);
    auto* library = reinterpret_cast<CUlibrary>(*out);
    CUresult result = cuLibraryLoadData(&library, image.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (result != CUDA_SUCCESS) {
      *out = reinterpret_cast<Value>(library);
      return result;
    }
    if (world().fake) {
      CUmodule module = nullptr;
      result = cuLibraryGetModule(&module, library);
    } else {
      CUdeviceptr address = 0;
      size_t bytes = 0;
      result = cuLibraryGetGlobal(&address, &bytes, library, "big");
    }
    if (result == CUDA_SUCCESS) {
      *out = reinterpret_cast<Value>(library);
    } else {
      cuLibraryUnload(library);
    }
    return result;
  };
  way.give_back = unload_library;
  return way;
}

// The kernel is loaded beforehand; the take is its first launch, when half a GiB of the cap is left.
Way first_launch(const std::string& name, std::function<std::string()> image, CUlimit limit, size_t limit_bytes) {
  static CUmodule module = nullptr;
  Way way;
  way.name = name;
  way.refusal = Refusal::kMay;
  way.once_before = false;
  way.optional = true;
  way.room_bytes = kGib / 2;
  way.most_takes = 1;
  way.begin = [image, limit, limit_bytes] {
    CUresult result = limit_bytes == 0 ? CUDA_SUCCESS : cuCtxSetLimit(limit, limit_bytes);
    if (result == CUDA_SUCCESS) result = cuModuleLoadData(&module, image().c_str());
    return result;
  };
  way.take = [](Value* out) {
    const CUresult result = launch(module);
    if (result == CUDA_SUCCESS) *out = 0;
    return result;
  };
  way.give_back = [](Value) { return cuModuleUnload(module); };
  return way;
}

}  // namespace

void add_module_ways(Ways& ways) {
  ways.push_back(modules("cuModuleLoadData, lazy", "LAZY"));
  ways.push_back(modules("cuModuleLoadData, eager", "EAGER"));
  ways.push_back(libraries());
  ways.push_back(first_launch(
      "kernel with 32 KiB of local memory, first launch", [] { return with_local(32768); }, CU_LIMIT_STACK_SIZE, 0));
  ways.back().step_bytes = size_t{32768} * 2048 * 132;
  if (world().fake) return;  // the fake driver's kernels know neither heap nor fifo
  ways.push_back(first_launch(
      "kernel that calls malloc, first launch", [] { return kHeader + std::string(kWithMalloc); },
      CU_LIMIT_MALLOC_HEAP_SIZE, 2 * kGib));
  ways.back().step_bytes = 2 * kGib;
  ways.push_back(first_launch(
      "kernel that calls printf, first launch", [] { return kHeader + std::string(kWithPrintf); },
      CU_LIMIT_PRINTF_FIFO_SIZE, kGib));
  ways.back().step_bytes = kGib;
}

}  // namespace ways
