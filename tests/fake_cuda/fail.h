// Failures and slowness on demand and the call log: what a test asks of the fake through FAKE_CUDA_FAIL, FAKE_CUDA_SLOW
// and FAKE_CUDA_LOG. Called on every exported function's way in and out, from any thread.
#pragma once

namespace fake {

// FAKE_CUDA_FAIL="cuMemAlloc_v2:3=2,cuMemFree_v2:*=700": true if this call of `name` must return *code without effect.
// Each call counts, whoever makes it.
[[nodiscard]] bool fails_on_demand(const char* name, int* code);

// FAKE_CUDA_SLOW="cuMemAlloc_v2=40": each call of that export takes so many milliseconds longer.
void wait_on_demand(const char* name);

// Appends "name result" to the file of FAKE_CUDA_LOG, if one is named.
void log_call(const char* name, int result);

}  // namespace fake
