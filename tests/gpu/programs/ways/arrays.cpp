// CUDA arrays of every dimension, in formats of one to sixteen bytes and shapes that fill no granule, and mipmaps of
// them.
#include <cstring>

#include "way.h"

namespace ways {
namespace {

struct Shape {
  const char* name;
  size_t width, height, depth;
  CUarray_format format;
  unsigned channels;
  unsigned flags;
  unsigned levels;  // not 0: a mipmap
};

size_t element_bytes(const Shape& shape) {
  size_t one = 4;
  if (shape.format == CU_AD_FORMAT_UNSIGNED_INT8) one = 1;
  if (shape.format == CU_AD_FORMAT_HALF || shape.format == CU_AD_FORMAT_SIGNED_INT16) one = 2;
  return one * shape.channels;
}

size_t whole_bytes(const Shape& shape) {
  const auto some = [](size_t n) { return n == 0 ? 1 : n; };
  return shape.width * some(shape.height) * some(shape.depth) * element_bytes(shape);
}

CUDA_ARRAY3D_DESCRIPTOR_v2 describe(const Shape& shape) {
  CUDA_ARRAY3D_DESCRIPTOR_v2 made;
  std::memset(&made, 0, sizeof(made));
  made.Width = shape.width;
  made.Height = shape.height;
  made.Depth = shape.depth;
  made.Format = shape.format;
  made.NumChannels = shape.channels;
  made.Flags = shape.flags;
  return made;
}

// Tiles are several rows high: an array of one row takes as much as one of eight.
size_t least_of(const Shape& shape) { return shape.height == 0 ? world().cap_bytes / 16 : 0; }

CUresult destroy_array(Value value) { return cuArrayDestroy(reinterpret_cast<CUarray>(value)); }
CUresult destroy_mipmap(Value value) { return cuMipmappedArrayDestroy(reinterpret_cast<CUmipmappedArray>(value)); }

Way flat(const Shape& shape) {
  Way way;
  way.name = std::string("cuArrayCreate_v2 ") + shape.name;
  way.step_bytes = whole_bytes(shape);
  way.least_bytes = least_of(shape);
  way.take = [shape](Value* out) {
    const CUDA_ARRAY_DESCRIPTOR_v2 descriptor{shape.width, shape.height, shape.format, shape.channels};
    return cuArrayCreate_v2(reinterpret_cast<CUarray*>(out), &descriptor);
  };
  way.give_back = destroy_array;
  return way;
}

Way solid(const Shape& shape) {
  Way way;
  way.name = std::string(shape.levels != 0 ? "cuMipmappedArrayCreate " : "cuArray3DCreate_v2 ") + shape.name;
  way.step_bytes = whole_bytes(shape);
  way.least_bytes = least_of(shape);
  way.take = [shape](Value* out) {
    const CUDA_ARRAY3D_DESCRIPTOR_v2 descriptor = describe(shape);
    return shape.levels != 0
               ? cuMipmappedArrayCreate(reinterpret_cast<CUmipmappedArray*>(out), &descriptor, shape.levels)
               : cuArray3DCreate_v2(reinterpret_cast<CUarray*>(out), &descriptor);
  };
  way.give_back = shape.levels != 0 ? destroy_mipmap : destroy_array;
  return way;
}

// The spelling of CUDA 3.1, with 32-bit sizes.
Way first_spelling() {
  Way way;
  way.name = "cuArrayCreate (first spelling)";
  way.optional = true;
  way.take = [](Value* out) {
    const CUDA_ARRAY_DESCRIPTOR_v1 descriptor{4096, 4096, CU_AD_FORMAT_FLOAT, 1};
    return call_by_name("cuArrayCreate", reinterpret_cast<CUarray*>(out), &descriptor);
  };
  way.give_back = destroy_array;
  return way;
}

// Addresses without memory, until memory made by cuMemCreate is mapped into them.
Way sparse() {
  Way way = solid({"sparse 2D 4096x4096 float", 4096, 4096, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE, 0});
  way.refusal = Refusal::kMay;
  way.optional = true;
  return way;
}

}  // namespace

void add_array_ways(Ways& ways) {
  constexpr unsigned kLayers = CUDA_ARRAY3D_LAYERED, kCube = CUDA_ARRAY3D_CUBEMAP, kSurface = CUDA_ARRAY3D_SURFACE_LDST;
  ways.push_back(flat({"1D 131072 x 16 B", 131072, 0, 0, CU_AD_FORMAT_FLOAT, 4, 0, 0}));
  ways.push_back(flat({"1D 1001 x 1 B", 1001, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0, 0}));
  ways.back().room_bytes = kBlock;
  ways.back().most_takes = 80000;
  ways.back().least_bytes = kMib;
  ways.push_back(flat({"2D 4096x4096 float", 4096, 4096, 0, CU_AD_FORMAT_FLOAT, 1, 0, 0}));
  ways.push_back(flat({"2D 1000x1000 float", 1000, 1000, 0, CU_AD_FORMAT_FLOAT, 1, 0, 0}));
  ways.push_back(flat({"2D 5001x3001 u8", 5001, 3001, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0, 0}));
  ways.push_back(first_spelling());
  ways.push_back(solid({"3D 256^3 float", 256, 256, 256, CU_AD_FORMAT_FLOAT, 1, 0, 0}));
  ways.push_back(solid({"3D 101x103x107 half4", 101, 103, 107, CU_AD_FORMAT_HALF, 4, kSurface, 0}));
  ways.push_back(solid({"1D layered 16384 x 512", 16384, 0, 512, CU_AD_FORMAT_FLOAT, 2, kLayers, 0}));
  ways.push_back(solid({"2D layered 513x511x50 u8", 513, 511, 50, CU_AD_FORMAT_UNSIGNED_INT8, 1, kLayers, 0}));
  ways.push_back(solid({"cubemap 1024 float4", 1024, 1024, 6, CU_AD_FORMAT_FLOAT, 4, kCube, 0}));
  ways.push_back(solid({"cubemap layered 500x12 s16", 500, 500, 12, CU_AD_FORMAT_SIGNED_INT16, 1, kCube | kLayers, 0}));
  ways.push_back(sparse());
  ways.push_back(solid({"2D 4096x4096 float", 4096, 4096, 0, CU_AD_FORMAT_FLOAT, 1, 0, 13}));
  ways.push_back(solid({"3D 256^3 float", 256, 256, 256, CU_AD_FORMAT_FLOAT, 1, 0, 8}));
  ways.push_back(solid({"2D layered 1001x999x7 half", 1001, 999, 7, CU_AD_FORMAT_HALF, 1, kLayers, 10}));
}

}  // namespace ways
