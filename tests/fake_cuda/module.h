// Modules, libraries and kernels. The image of a fake module is a line of text, "FAKE code=<bytes> local=<bytes>
// kernels=a,b": code is taken at load, local memory at the first launch. A library takes nothing until one of its
// kernels or its module is asked for in a context. Under the driver's lock.
#pragma once

#include "tests/fake_cuda/context.h"

namespace fake {

// Loads a library's code and takes the local memory, as the first launch of that function does.
CUresult prepare_launch(Driver& driver, CUfunction function);
void unload_all_modules(Driver& driver, Context* context);

}  // namespace fake
