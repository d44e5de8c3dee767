// Failures on demand and the call log: what a test asks of the fake through FAKE_CUDA_FAIL and FAKE_CUDA_LOG. Called on
// every exported function's way in and out, from any thread.
#pragma once

namespace fake {

// FAKE_CUDA_FAIL="cuMemAlloc_v2:3=2,cuMemFree_v2:*=700": true if this call of `name` must return *code without effect.
// Each call counts, whoever makes it.
[[nodiscard]] bool fails_on_demand(const char* name, int* code);

// Appends "name result" to the file of FAKE_CUDA_LOG, if one is named.
void log_call(const char* name, int result);

}  // namespace fake
