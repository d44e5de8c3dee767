#include "shim/driver/array.h"

#include "shim/driver/reclaim.h"

namespace gpucap::driver::array {
namespace {

// Numbers instead of names: the older headers do not have all of them, and drivers accept them all the same.
constexpr int kUnorm8x1 = 0xc0, kSnorm16x4 = 0xcb, kBc1 = 0x91, kBc7Srgb = 0x9e;

bool is_block_compressed(int format) { return format >= kBc1 && format <= kBc7Srgb; }
// BC1 and BC4 pack 4 x 4 texels into 8 bytes, the others into 16.
uint64_t compressed_block_bytes(int format) {
  return format == 0x91 || format == 0x92 || format == 0x97 || format == 0x98 ? 8 : 16;
}

uint64_t element_bytes(CUarray_format format, unsigned int channels) {
  uint64_t channel = 4;  // planar video formats: at most 4 bytes a texel over all planes
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      channel = 1;
      break;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      channel = 2;
      break;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      channel = 4;
      break;
    default:
      if (format < kUnorm8x1 || format > kSnorm16x4) return channel;
      // 8x1 8x2 8x4 16x1 16x2 16x4, unsigned then signed.
      const int which = (format - kUnorm8x1) % 6;
      return uint64_t{which < 3 ? 1u : 2u} << which % 3;
  }
  return channel * (channels == 0 ? 1 : channels);
}

core::ArrayShape make_shape(uint64_t w, uint64_t h, uint64_t d, CUarray_format format, unsigned int channels,
                            unsigned int flags, unsigned int levels) {
  core::ArrayShape shape;
  const bool compressed = is_block_compressed(format);
  shape.width = compressed ? (w + 3) / 4 : w;
  shape.height = compressed ? (h + 3) / 4 : h;
  shape.depth = d;
  shape.element_bytes = compressed ? compressed_block_bytes(format) : element_bytes(format, channels);
  shape.levels = levels;
  shape.layered = (flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
  return shape;
}

}  // namespace

core::ArrayShape shape_of(const CUDA_ARRAY_DESCRIPTOR_v1& d, unsigned int levels) {
  return make_shape(d.Width, d.Height, 0, d.Format, d.NumChannels, 0, levels);
}
core::ArrayShape shape_of(const CUDA_ARRAY_DESCRIPTOR& d, unsigned int levels) {
  return make_shape(d.Width, d.Height, 0, d.Format, d.NumChannels, 0, levels);
}
core::ArrayShape shape_of(const CUDA_ARRAY3D_DESCRIPTOR_v1& d, unsigned int levels) {
  return make_shape(d.Width, d.Height, d.Depth, d.Format, d.NumChannels, d.Flags, levels);
}
core::ArrayShape shape_of(const CUDA_ARRAY3D_DESCRIPTOR& d, unsigned int levels) {
  return make_shape(d.Width, d.Height, d.Depth, d.Format, d.NumChannels, d.Flags, levels);
}

Go Step::begin(Api api, const core::ArrayShape& shape) {
  process_ = Process::get();
  if (process_ == nullptr) return Go::kPass;
  const Current now = current(*process_);
  device_ = now.device;
  if (device_ == nullptr) return Go::kPass;
  api_ = api;
  context_ = now.context;
  at_least_ = core::array_bytes_at_least(shape);
  promised_ = core::array_bytes_at_most(shape);
  if (reserve(*process_, *device_, {promised_, static_cast<uint16_t>(api_), reclaim}) == Verdict::kRefused)
    return Go::kRefuse;
  begin_flight(*device_);
  return Go::kCharge;
}

void Step::end(CUresult result, core::Space space, uint64_t handle) {
  if (result != CUDA_SUCCESS) {
    settle(*device_, GPUCAP_KIND_ARRAY, promised_, 0);
    end_flight(*device_);
    return tell_failure(*process_, *device_, api_, GPUCAP_KIND_ARRAY, at_least_, result);
  }
  core::Record record;
  record.space = space;
  record.key = handle;
  record.kind = GPUCAP_KIND_ARRAY;
  record.device = static_cast<uint8_t>(device_->ordinal);
  record.context = context_;
  record.bytes = at_least_ <= core::BlockMap::kLargestSmall ? at_least_ : core::round_up(at_least_, 2 * core::kMiB);
  note(*process_, record);
  gpucap::charge(*device_, GPUCAP_KIND_ARRAY, static_cast<int64_t>(record.bytes));
  end_flight(*device_);
  // The promise stands until the look has told the true size.
  look(*process_, *device_, true);
  settle(*device_, GPUCAP_KIND_ARRAY, promised_, 0);
  count_live(*device_, 1);
  tell_charge(*process_, *device_, api_, GPUCAP_KIND_ARRAY, handle, at_least_);
}

void ReleaseStep::begin(Api api, core::Space space, uint64_t handle) {
  process_ = Process::get();
  api_ = api;
  if (process_ == nullptr || !process_->table().take(space, handle, &record_)) return;
  device_ = process_->device(record_.device);
  begin_flight(*device_);
}

void ReleaseStep::end(CUresult result) {
  if (device_ == nullptr) return;
  if (result != CUDA_SUCCESS) {
    note(*process_, record_);
    end_flight(*device_);
    return;
  }
  gpucap::charge(*device_, GPUCAP_KIND_ARRAY, -static_cast<int64_t>(record_.bytes));
  end_flight(*device_);
  look(*process_, *device_, true);
  count_live(*device_, -1);
  tell_release(*process_, *device_, api_, GPUCAP_KIND_ARRAY, record_.key, record_.bytes);
}

}  // namespace gpucap::driver::array
