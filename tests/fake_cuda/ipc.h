// Memory of another process by handle: costs the importer nothing. Under the driver's lock.
#pragma once

#include "tests/fake_cuda/driver.h"

namespace fake {

void release_import(uint64_t address, const Range& range);

}  // namespace fake
