// See array.h. The exported functions are in array_api.cpp.
#include "tests/fake_cuda/array.h"

#include <algorithm>

namespace fake {
namespace {

constexpr uint64_t kGobWidthBytes = 64;
constexpr uint64_t kGobRows = 8;
constexpr uint64_t kHighestBlockGobs = 16;

unsigned bytes_of_channel(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 0;  // compressed and planar formats are not imitated
  }
}

}  // namespace

uint64_t layout_bytes(const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  const unsigned channel = bytes_of_channel(descriptor.Format);
  const unsigned channels = descriptor.NumChannels;
  if (channel == 0 || (channels != 1 && channels != 2 && channels != 4) || descriptor.Width == 0) return 0;
  if (descriptor.Width >= kAbsurdBytes || descriptor.Height >= kAbsurdBytes) return kAbsurdBytes;
  const uint64_t height = std::max<uint64_t>(descriptor.Height, 1);
  const uint64_t gobs = (height + kGobRows - 1) / kGobRows;
  uint64_t block_gobs = 1;
  while (block_gobs < gobs && block_gobs < kHighestBlockGobs) block_gobs *= 2;
  const uint64_t row_bytes = round_up(descriptor.Width * channel * channels, kGobWidthBytes);
  const uint64_t slice = saturating_product(row_bytes, round_up(height, kGobRows * block_gobs));
  return saturating_product(slice, std::max<uint64_t>(descriptor.Depth, 1));
}

void free_all_arrays(Driver& driver, Context* context) {
  context->small_arrays.clear([&](uint64_t block) {
    context->blocks.erase(block);
    Backing::discard(block, kBlockBytes);
    Backing::release(block, kBlockBytes);
    driver.give(context->device, kBlockBytes);
  });
  for (Array* const array : context->arrays) {
    driver.give(context->device, array->charged);
    for (Array* const level : array->levels) delete level;
    delete array;
  }
  context->arrays.clear();
}

}  // namespace fake
