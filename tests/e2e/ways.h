// Every way of taking device memory that the client knows: take one piece, give it back.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tests/e2e/driver_functions.h"

struct Piece {
  uint64_t a = 0, b = 0;  // pointer or handle; address of a mapping
};

struct Way {
  CUresult (*take)(const DriverFunctions& f, size_t bytes, Piece* piece);
  CUresult (*give)(const DriverFunctions& f, const Piece& piece, size_t bytes);
};

inline CUmemoryPool own_pool(const DriverFunctions& f) {
  static CUmemoryPool pool = [&f] {  // once, whoever comes first
    CUmemPoolProps props{};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemoryPool made = nullptr;
    f.cuMemPoolCreate(&made, &props);
    return made;
  }();
  return pool;
}

inline CUmemAllocationProp on_device(int device) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = device;
  return prop;
}

inline CUDA_ARRAY3D_DESCRIPTOR plane(size_t bytes) {
  CUDA_ARRAY3D_DESCRIPTOR d{};
  d.Width = 2048;
  d.Height = bytes / 2048 / 16;
  d.Format = CU_AD_FORMAT_FLOAT;
  d.NumChannels = 4;
  return d;
}

inline CUresult free_pointer(const DriverFunctions& f, const Piece& p, size_t) { return f.cuMemFree_v2(p.a); }
inline CUresult free_on_stream(const DriverFunctions& f, const Piece& p, size_t) {
  return f.cuMemFreeAsync(p.a, nullptr);
}

inline CUresult create_mapped(const DriverFunctions& f, size_t n, Piece* p, bool release_at_once) {
  const CUmemAllocationProp prop = on_device(0);
  CUmemGenericAllocationHandle handle = 0;
  CUresult result = f.cuMemCreate(&handle, n, &prop, 0);
  if (result != CUDA_SUCCESS) return result;
  CUdeviceptr address = 0;
  result = f.cuMemAddressReserve(&address, n, 0, 0, 0);
  if (result == CUDA_SUCCESS) result = f.cuMemMap(address, n, 0, handle, 0);
  if (result == CUDA_SUCCESS && release_at_once) result = f.cuMemRelease(handle);
  *p = {handle, address};
  return result;
}

inline const std::map<std::string, Way>& ways() {
  using F = const DriverFunctions&;
  static const std::map<std::string, Way> all = {
      {"alloc",
       {[](F f, size_t n, Piece* p) { return f.cuMemAlloc_v2(reinterpret_cast<CUdeviceptr*>(&p->a), n); },
        free_pointer}},
      {"pitch",
       {[](F f, size_t n, Piece* p) {
          size_t pitch = 0;
          return f.cuMemAllocPitch_v2(reinterpret_cast<CUdeviceptr*>(&p->a), &pitch, 1000, n / 1024, 4);
        },
        free_pointer}},
      {"managed",
       {[](F f, size_t n, Piece* p) {
          return f.cuMemAllocManaged(reinterpret_cast<CUdeviceptr*>(&p->a), n, CU_MEM_ATTACH_GLOBAL);
        },
        free_pointer}},
      {"async",
       {[](F f, size_t n, Piece* p) { return f.cuMemAllocAsync(reinterpret_cast<CUdeviceptr*>(&p->a), n, nullptr); },
        free_on_stream}},
      {"async_ptsz",
       {[](F f, size_t n, Piece* p) {
          return f.cuMemAllocAsync_ptsz(reinterpret_cast<CUdeviceptr*>(&p->a), n, nullptr);
        },
        free_on_stream}},
      {"async_freed_plainly",
       {[](F f, size_t n, Piece* p) { return f.cuMemAllocAsync(reinterpret_cast<CUdeviceptr*>(&p->a), n, nullptr); },
        free_pointer}},
      {"pool",
       {[](F f, size_t n, Piece* p) {
          return f.cuMemAllocFromPoolAsync(reinterpret_cast<CUdeviceptr*>(&p->a), n, own_pool(f), nullptr);
        },
        free_on_stream}},
      {"pool_ptsz",
       {[](F f, size_t n, Piece* p) {
          return f.cuMemAllocFromPoolAsync_ptsz(reinterpret_cast<CUdeviceptr*>(&p->a), n, own_pool(f), nullptr);
        },
        free_on_stream}},
      {"create",
       {[](F f, size_t n, Piece* p) {
          const CUmemAllocationProp prop = on_device(0);
          return f.cuMemCreate(reinterpret_cast<CUmemGenericAllocationHandle*>(&p->a), n, &prop, 0);
        },
        [](F f, const Piece& p, size_t) { return f.cuMemRelease(p.a); }}},
      {"create_unmap_release",
       {[](F f, size_t n, Piece* p) { return create_mapped(f, n, p, false); },
        [](F f, const Piece& p, size_t n) {
          const CUresult result = f.cuMemUnmap(p.b, n);
          return result == CUDA_SUCCESS ? f.cuMemRelease(p.a) : result;
        }}},
      {"create_release_while_mapped",
       {[](F f, size_t n, Piece* p) { return create_mapped(f, n, p, true); },
        [](F f, const Piece& p, size_t n) { return f.cuMemUnmap(p.b, n); }}},
      {"create_retained",
       {[](F f, size_t n, Piece* p) {
          CUresult result = create_mapped(f, n, p, true);
          CUmemGenericAllocationHandle again = 0;
          if (result == CUDA_SUCCESS) result = f.cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(p->b));
          if (result == CUDA_SUCCESS) result = f.cuMemUnmap(p->b, n);
          if (result == CUDA_SUCCESS) p->a = again;
          return result;
        },
        [](F f, const Piece& p, size_t) { return f.cuMemRelease(p.a); }}},
      {"array",
       {[](F f, size_t n, Piece* p) {
          const CUDA_ARRAY_DESCRIPTOR d{2048, n / 2048 / 16, CU_AD_FORMAT_FLOAT, 4};
          return f.cuArrayCreate_v2(reinterpret_cast<CUarray*>(&p->a), &d);
        },
        [](F f, const Piece& p, size_t) { return f.cuArrayDestroy(reinterpret_cast<CUarray>(p.a)); }}},
      {"array3d",
       {[](F f, size_t n, Piece* p) {
          const CUDA_ARRAY3D_DESCRIPTOR d = plane(n);
          return f.cuArray3DCreate_v2(reinterpret_cast<CUarray*>(&p->a), &d);
        },
        [](F f, const Piece& p, size_t) { return f.cuArrayDestroy(reinterpret_cast<CUarray>(p.a)); }}},
      {"mipmap",
       {[](F f, size_t n, Piece* p) {
          const CUDA_ARRAY3D_DESCRIPTOR d = plane(n);
          return f.cuMipmappedArrayCreate(reinterpret_cast<CUmipmappedArray*>(&p->a), &d, 3);
        },
        [](F f, const Piece& p, size_t) {
          return f.cuMipmappedArrayDestroy(reinterpret_cast<CUmipmappedArray>(p.a));
        }}},
  };
  return all;
}
