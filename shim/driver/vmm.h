// Virtual memory management: memory is made with a handle, mapped, and lives until every handle is released and every
// mapping is gone, in whatever order (JAX releases while it is mapped). Charged at create, to the device that the
// properties name.
#pragma once

#include "shim/driver/call.h"
#include "shim/driver/step.h"

namespace gpucap::driver::vmm {

class CreateStep {
 public:
  Go begin(Api api, uint64_t size, const CUmemAllocationProp* prop);
  void end(CUresult result, CUmemGenericAllocationHandle handle);
  template <typename Function>
  CUresult ask(const Call<Function>& call) {
    return ask_driver(call, *process_, *device_, size_, Timing::kEach);
  }
  CUresult refuse() { return refuse_by_cap(*process_, *device_, api_, size_); }

 private:
  Process* process_ = nullptr;
  Device* device_ = nullptr;
  Api api_ = Api::kNone;
  uint64_t size_ = 0;
};

// A handle or a mapping more, or one less. What falls to nothing is uncharged.
void count_handle(CUmemGenericAllocationHandle handle, int delta);
void before_map(CUmemGenericAllocationHandle handle);
void after_map(CUresult result, CUdeviceptr address, uint64_t size, CUmemGenericAllocationHandle handle);

// A call that may give memory back: notes what it takes away, and puts it back if the driver refuses.
class ReleaseStep {
 public:
  void begin(Api api, CUmemGenericAllocationHandle handle);
  void end(CUresult result);

 private:
  Process* process_ = nullptr;
  Device* device_ = nullptr;
  Api api_ = Api::kNone;
  bool gone_ = false;
  core::Record record_;
};

// What an unmapping takes away goes out of the books before the driver is called: the moment that the memory is free,
// another thread may be given the same handle. Put back if the driver refuses.
class UnmapStep {
 public:
  void begin(CUdeviceptr address, uint64_t size);
  void end(Api api, CUresult result);

 private:
  static constexpr int kMost = 64;  // mappings that can be put back; what one call ends beyond them goes out afterwards
  struct Ended {
    core::Record mapping;
    core::Record memory;  // its record as it was left; space kNone if the memory lives on or is not ours
  };
  bool take_next(Ended* ended);
  void give_back(Api api, const core::Record& memory);

  Process* process_ = nullptr;
  uint64_t at_ = 0, end_ = 0;
  int count_ = 0;
  Ended ended_[kMost];
};

template <typename Function>
CUresult create(const Call<Function>& call, CUmemGenericAllocationHandle* handle, uint64_t size,
                const CUmemAllocationProp* prop) {
  if (handle == nullptr || prop == nullptr || size == 0) return call();
  CreateStep step;
  const Go go = step.begin(call.api(), size, prop);
  if (go == Go::kPass) return call();
  if (go == Go::kRefuse) return step.refuse();
  const CUresult result = step.ask(call);
  step.end(result, *handle);
  return result;
}

template <typename Function>
CUresult map(const Call<Function>& call, CUdeviceptr address, uint64_t size, CUmemGenericAllocationHandle handle) {
  before_map(handle);
  const CUresult result = call();
  after_map(result, address, size, handle);
  return result;
}

template <typename Function>
CUresult unmap(const Call<Function>& call, CUdeviceptr address, uint64_t size) {
  UnmapStep step;
  step.begin(address, size);
  const CUresult result = call.timed(Timing::kEach);
  step.end(call.api(), result);
  return result;
}

template <typename Function>
CUresult release(const Call<Function>& call, CUmemGenericAllocationHandle handle) {
  ReleaseStep step;
  step.begin(call.api(), handle);
  const CUresult result = call.timed(Timing::kEach);
  step.end(result);
  return result;
}

template <typename Function>
CUresult retain(const Call<Function>& call, CUmemGenericAllocationHandle* handle) {
  const CUresult result = call();
  if (result == CUDA_SUCCESS) count_handle(*handle, 1);
  return result;
}

}  // namespace gpucap::driver::vmm
