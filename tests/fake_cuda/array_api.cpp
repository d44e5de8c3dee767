// The exported functions of arrays and mipmapped arrays.
#include <algorithm>

#include "tests/fake_cuda/array.h"
#include "tests/fake_cuda/linear.h"

namespace fake {
namespace {

CUDA_ARRAY3D_DESCRIPTOR widened(const CUDA_ARRAY_DESCRIPTOR& d) {
  return {d.Width, d.Height, 0, d.Format, d.NumChannels, 0};
}
CUDA_ARRAY3D_DESCRIPTOR widened(const CUDA_ARRAY_DESCRIPTOR_v1& d) {
  return {d.Width, d.Height, 0, d.Format, d.NumChannels, 0};
}
CUDA_ARRAY3D_DESCRIPTOR widened(const CUDA_ARRAY3D_DESCRIPTOR_v1& d) {
  return {d.Width, d.Height, d.Depth, d.Format, d.NumChannels, d.Flags};
}

Array* as_array(CUarray handle) { return reinterpret_cast<Array*>(handle); }
Array* as_array(CUmipmappedArray handle) { return reinterpret_cast<Array*>(handle); }

// The array behind a handle in the current process, or nullptr.
Array* find(Driver& driver, Array* array) {
  for (Context* const context : driver.contexts) {
    if (context->arrays.count(array) != 0) return array;
    for (Array* const owner : context->arrays) {
      if (std::find(owner->levels.begin(), owner->levels.end(), array) != owner->levels.end()) return array;
    }
  }
  return nullptr;
}

// Charges array->bytes, which the caller has summed up.
CUresult take(Driver& driver, Array* array) {
  constexpr unsigned kTakesNothing = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;
  if (array->bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (array->bytes >= kAbsurdBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  Context* const context = array->context;
  if ((array->descriptor.Flags & kTakesNothing) != 0) return CUDA_SUCCESS;
  if (array->bytes <= kSmallBytes) {
    array->small_address = place_small(driver, context, context->small_arrays, array->bytes, false);
    return array->small_address == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  }
  const uint64_t charge = whole_blocks(array->bytes);
  if (!driver.take(context->device, charge)) return CUDA_ERROR_OUT_OF_MEMORY;
  array->charged = charge;
  return CUDA_SUCCESS;
}

CUresult create(Driver& driver, CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  auto array = std::make_unique<Array>();
  array->descriptor = descriptor;
  array->context = current_context();
  array->bytes = layout_bytes(descriptor);
  const CUresult result = take(driver, array.get());
  if (result != CUDA_SUCCESS) return result;
  array->context->arrays.insert(array.get());
  *out = reinterpret_cast<CUarray>(array.release());
  return CUDA_SUCCESS;
}

CUresult create_mipmapped(Driver& driver, CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR& descriptor,
                          unsigned levels) {
  const auto shrink = [](uint64_t size, unsigned level) {
    return size == 0 ? 0 : std::max<uint64_t>(size >> level, 1);
  };
  const bool layered = (descriptor.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
  const uint64_t longest = std::max({descriptor.Width, descriptor.Height, layered ? 1 : descriptor.Depth});
  auto array = std::make_unique<Array>();
  array->descriptor = descriptor;
  array->context = current_context();
  std::vector<std::unique_ptr<Array>> made;
  for (unsigned level = 0; level < levels && (longest >> level) != 0; ++level) {
    auto& part = *made.emplace_back(std::make_unique<Array>());
    part.descriptor = descriptor;
    part.descriptor.Width = shrink(descriptor.Width, level);
    part.descriptor.Height = shrink(descriptor.Height, level);
    if (!layered) part.descriptor.Depth = shrink(descriptor.Depth, level);
    part.context = array->context;
    part.is_level = true;
    array->bytes = std::min(kAbsurdBytes, array->bytes + layout_bytes(part.descriptor));
  }
  const CUresult result = take(driver, array.get());
  if (result != CUDA_SUCCESS) return result;
  for (auto& part : made) array->levels.push_back(part.release());
  array->context->arrays.insert(array.get());
  *out = reinterpret_cast<CUmipmappedArray>(array.release());
  return CUDA_SUCCESS;
}

CUresult destroy(Driver& driver, Array* array, bool mipmapped) {
  if (find(driver, array) == nullptr || array->is_level || array->levels.empty() == mipmapped) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  Context* const context = array->context;
  if (array->small_address != 0) {
    remove_small(driver, context, context->small_arrays, array->small_address, array->bytes);
  }
  driver.give(context->device, array->charged);
  context->arrays.erase(array);
  for (Array* const level : array->levels) delete level;
  delete array;
  return CUDA_SUCCESS;
}

template <class Descriptor>
CUresult describe(Driver& driver, Descriptor* out, CUarray handle) {
  const Array* const array = find(driver, as_array(handle));
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  out->Width = static_cast<decltype(out->Width)>(array->descriptor.Width);
  out->Height = static_cast<decltype(out->Height)>(array->descriptor.Height);
  out->Format = array->descriptor.Format;
  out->NumChannels = array->descriptor.NumChannels;
  if constexpr (requires { out->Depth; }) {
    out->Depth = static_cast<decltype(out->Depth)>(array->descriptor.Depth);
    out->Flags = array->descriptor.Flags;
  }
  return CUDA_SUCCESS;
}

CUresult require(Driver& driver, CUDA_ARRAY_MEMORY_REQUIREMENTS* out, Array* handle) {
  const Array* const array = find(driver, handle);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = {};
  out->size = whole_blocks(array->bytes);
  out->alignment = kBlockBytes;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace fake

using namespace fake;

CUresult cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* desc) {
  return enter("cuArrayCreate_v2", Need::kContext, [&](Driver& d) {
    return out == nullptr || desc == nullptr ? CUDA_ERROR_INVALID_VALUE : create(d, out, widened(*desc));
  });
}
CUresult cuArrayCreate(CUarray* out, const CUDA_ARRAY_DESCRIPTOR_v1* desc) {
  return enter("cuArrayCreate", Need::kContext, [&](Driver& d) {
    return out == nullptr || desc == nullptr ? CUDA_ERROR_INVALID_VALUE : create(d, out, widened(*desc));
  });
}
CUresult cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* desc) {
  return enter("cuArray3DCreate_v2", Need::kContext, [&](Driver& d) {
    return out == nullptr || desc == nullptr ? CUDA_ERROR_INVALID_VALUE : create(d, out, *desc);
  });
}
CUresult cuArray3DCreate(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR_v1* desc) {
  return enter("cuArray3DCreate", Need::kContext, [&](Driver& d) {
    return out == nullptr || desc == nullptr ? CUDA_ERROR_INVALID_VALUE : create(d, out, widened(*desc));
  });
}
CUresult cuArrayDestroy(CUarray array) {
  return enter("cuArrayDestroy", Need::kContext, [&](Driver& d) { return destroy(d, as_array(array), false); });
}
CUresult cuMipmappedArrayCreate(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR* desc, unsigned int levels) {
  return enter("cuMipmappedArrayCreate", Need::kContext, [&](Driver& d) {
    return out == nullptr || desc == nullptr || levels == 0 ? CUDA_ERROR_INVALID_VALUE
                                                            : create_mipmapped(d, out, *desc, levels);
  });
}
CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return enter("cuMipmappedArrayDestroy", Need::kContext, [&](Driver& d) { return destroy(d, as_array(array), true); });
}
CUresult cuMipmappedArrayGetLevel(CUarray* out, CUmipmappedArray handle, unsigned int level) {
  return enter("cuMipmappedArrayGetLevel", Need::kContext, [&](Driver& d) {
    const Array* const array = find(d, as_array(handle));
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (out == nullptr || level >= array->levels.size()) return CUDA_ERROR_INVALID_VALUE;
    *out = reinterpret_cast<CUarray>(array->levels[level]);
    return CUDA_SUCCESS;
  });
}
CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1* out, CUarray array) {
  return enter("cuArrayGetDescriptor", Need::kContext, [&](Driver& d) { return describe(d, out, array); });
}
CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* out, CUarray array) {
  return enter("cuArrayGetDescriptor_v2", Need::kContext, [&](Driver& d) { return describe(d, out, array); });
}
CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1* out, CUarray array) {
  return enter("cuArray3DGetDescriptor", Need::kContext, [&](Driver& d) { return describe(d, out, array); });
}
CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* out, CUarray array) {
  return enter("cuArray3DGetDescriptor_v2", Need::kContext, [&](Driver& d) { return describe(d, out, array); });
}
CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, CUarray array, CUdevice) {
  return enter("cuArrayGetMemoryRequirements", Need::kContext,
               [&](Driver& d) { return require(d, out, as_array(array)); });
}
CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, CUmipmappedArray array, CUdevice) {
  return enter("cuMipmappedArrayGetMemoryRequirements", Need::kContext,
               [&](Driver& d) { return require(d, out, as_array(array)); });
}
