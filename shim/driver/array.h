// Arrays and mipmapped arrays. Their layout is the driver's secret, so the promise is an upper bound, the charge a
// lower one, and a look at NVML right after the call gives the rest to the driver's share (making an array takes some
// 100 us anyway).
#pragma once

#include "shim/core/array_size.h"
#include "shim/driver/call.h"
#include "shim/driver/current.h"
#include "shim/driver/step.h"

namespace gpucap::driver::array {

core::ArrayShape shape_of(const CUDA_ARRAY_DESCRIPTOR_v1& d, unsigned int levels);
core::ArrayShape shape_of(const CUDA_ARRAY_DESCRIPTOR& d, unsigned int levels);
core::ArrayShape shape_of(const CUDA_ARRAY3D_DESCRIPTOR_v1& d, unsigned int levels);
core::ArrayShape shape_of(const CUDA_ARRAY3D_DESCRIPTOR& d, unsigned int levels);

// Sparse arrays and those with deferred mapping take nothing by themselves: what is mapped into them was made by
// cuMemCreate.
inline bool takes_memory(const CUDA_ARRAY_DESCRIPTOR_v1&) { return true; }
inline bool takes_memory(const CUDA_ARRAY_DESCRIPTOR&) { return true; }
inline bool takes_memory(const CUDA_ARRAY3D_DESCRIPTOR_v1&) { return true; }
inline bool takes_memory(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  return (d.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) == 0;
}

class Step {
 public:
  Go begin(Api api, const core::ArrayShape& shape);
  void end(CUresult result, core::Space space, uint64_t handle);
  template <typename Function>
  CUresult ask(const Call<Function>& call) {
    return ask_driver(call, *process_, *device_, at_least_, Timing::kEach);
  }
  CUresult refuse() { return refuse_by_cap(*process_, *device_, api_, at_least_); }

 private:
  Process* process_ = nullptr;
  Device* device_ = nullptr;
  Api api_ = Api::kNone;
  uint8_t context_ = 0;
  uint64_t at_least_ = 0;
  uint64_t promised_ = 0;
};

class ReleaseStep {
 public:
  void begin(Api api, core::Space space, uint64_t handle);
  void end(CUresult result);

 private:
  Process* process_ = nullptr;
  Device* device_ = nullptr;
  Api api_ = Api::kNone;
  core::Record record_;
};

inline core::Space space_of(CUarray*) { return core::Space::kArray; }
inline core::Space space_of(CUmipmappedArray*) { return core::Space::kMipmap; }

template <typename Function, typename Handle, typename Descriptor>
CUresult charge(const Call<Function>& call, Handle* out, const Descriptor* descriptor, unsigned int levels) {
  if (out == nullptr || descriptor == nullptr || !takes_memory(*descriptor)) return call();
  Step step;
  const Go go = step.begin(call.api(), shape_of(*descriptor, levels));
  if (go == Go::kPass) return call();
  if (go == Go::kRefuse) return step.refuse();
  const CUresult result = step.ask(call);
  step.end(result, space_of(out), reinterpret_cast<uint64_t>(*out));
  return result;
}

template <typename Function, typename Handle>
CUresult release(const Call<Function>& call, core::Space space, Handle handle) {
  ReleaseStep step;
  step.begin(call.api(), space, reinterpret_cast<uint64_t>(handle));
  const CUresult result = call.timed(Timing::kEach);
  step.end(result);
  return result;
}

}  // namespace gpucap::driver::array
