// Pinned host memory: takes nothing of any card. Under the lock.
#pragma once

#include "tests/fake_cuda/driver.h"

namespace fake {

void release_host(uint64_t address, const Range& range);

}  // namespace fake
