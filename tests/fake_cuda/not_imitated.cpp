// The answer of every exported function that has no body of its own: see proc_rows.h.
#include "tests/fake_cuda/driver.h"
#include "tests/fake_cuda/proc_rows.h"

int fake::not_imitated(const char* name) {
  return enter(name, Need::kInitialised, [](Driver&) { return CUDA_ERROR_NOT_SUPPORTED; });
}
