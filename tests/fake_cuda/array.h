// Arrays and mipmapped arrays: sizes as the block-linear layout makes them. Their contents cannot be copied here.
// Under the driver's lock.
#pragma once

#include <vector>

#include "tests/fake_cuda/context.h"

namespace fake {

struct Array {
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  Context* context = nullptr;
  uint64_t bytes = 0;    // of the layout
  uint64_t charged = 0;  // 0: in shared blocks, or nothing
  uint64_t small_address = 0;
  bool is_level = false;       // of a mipmapped array, which owns it
  std::vector<Array*> levels;  // of a mipmapped array
};

// Bytes of one array or one level, before rounding to what the card hands out. kAbsurdBytes if it is absurd, 0 if
// wrong.
uint64_t layout_bytes(const CUDA_ARRAY3D_DESCRIPTOR& descriptor);
void free_all_arrays(Driver& driver, Context* context);

}  // namespace fake
