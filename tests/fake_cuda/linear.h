// Linear and managed memory of contexts, and what other kinds borrow from it: shared 2 MiB blocks. Under the lock.
#pragma once

#include "tests/fake_cuda/context.h"

namespace fake {

// A place in the context's shared blocks of one kind, with a new block if needed. 0 if the card is too full.
uint64_t place_small(Driver& driver, Context* context, SmallBlocks& blocks, uint64_t bytes, bool low);
void remove_small(Driver& driver, Context* context, SmallBlocks& blocks, uint64_t address, uint64_t bytes);

CUresult allocate_linear(Driver& driver, uint64_t bytes, bool low, uint64_t* address);
// cuMemFree of whatever kind: 0 is fine, anything but an allocation's first byte is CUDA_ERROR_INVALID_VALUE.
CUresult free_any(Driver& driver, uint64_t address);
// Linear, managed and host memory of the context.
void free_all_linear(Driver& driver, Context* context);

}  // namespace fake
