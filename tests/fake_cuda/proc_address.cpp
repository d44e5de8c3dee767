// cuGetProcAddress in both spellings: the address that dlsym gives for the spelling of the asked age. The rows come
// from proc_table.txt. Needs no initialisation.
#include <cstdlib>
#include <cstring>

#include "tests/fake_cuda/driver.h"
#include "tests/fake_cuda/proc_rows.h"

namespace fake {
namespace {

struct Answer {
  void* function = nullptr;
  bool name_known = false;
};

Answer look_up(const char* name, int version, bool per_thread) {
  const char* const as_old = std::getenv("FAKE_CUDA_NO_PROC_V2");
  const bool hide_v2 = as_old != nullptr && std::strcmp(as_old, "1") == 0;
  Answer answer;
  int best = 0;
  for (const ProcRow* row = kProcRows; row->name != nullptr; ++row) {
    if (std::strcmp(row->name, name) != 0) continue;
    if (row->per_thread && !per_thread) continue;
    if (hide_v2 && std::strcmp(row->spelling, "cuGetProcAddress_v2") == 0) continue;
    answer.name_known = true;
    // Of the same age the per-thread spelling wins when it is asked for; it was added later in some cases.
    const int age = row->since * 2 + (row->per_thread ? 1 : 0);
    if (row->since > version || age < best) continue;
    best = age;
    answer.function = row->function;
  }
  return answer;
}

CUresult answer(const char* name, void** function, int version, cuuint64_t flags,
                CUdriverProcAddressQueryResult* status) {
  if (name == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  const Answer found = look_up(name, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  *function = found.function;
  if (status != nullptr) {
    *status = found.function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
              : found.name_known        ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                        : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return found.function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // namespace
}  // namespace fake

using namespace fake;

CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  return enter("cuGetProcAddress_v2", Need::kNothing,
               [&](Driver&) { return answer(symbol, pfn, version, flags, status); });
}
CUresult cuGetProcAddress(const char* symbol, void** pfn, int version, cuuint64_t flags) {
  return enter("cuGetProcAddress", Need::kNothing,
               [&](Driver&) { return answer(symbol, pfn, version, flags, nullptr); });
}
CUresult cuGetExportTable(const void** table, const CUuuid*) {
  return enter("cuGetExportTable", Need::kNothing, [&](Driver&) {
    if (table != nullptr) *table = nullptr;
    return CUDA_ERROR_NOT_FOUND;
  });
}
