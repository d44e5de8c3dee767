// Names and texts of result codes. Need no initialisation.
#include "tests/fake_cuda/driver.h"

namespace fake {
namespace {

struct ErrorText {
  CUresult code;
  const char* name;
  const char* text;
};

#define FAKE_ERROR(code, text) \
  { code, #code, text }
constexpr ErrorText kErrors[] = {
    FAKE_ERROR(CUDA_SUCCESS, "no error"),
    FAKE_ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    FAKE_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    FAKE_ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    FAKE_ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    FAKE_ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    FAKE_ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    FAKE_ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    FAKE_ERROR(CUDA_ERROR_MAP_FAILED, "mapping of buffer object failed"),
    FAKE_ERROR(CUDA_ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture"),
    FAKE_ERROR(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    FAKE_ERROR(CUDA_ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"),
    FAKE_ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    FAKE_ERROR(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    FAKE_ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    FAKE_ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    FAKE_ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    FAKE_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    FAKE_ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
               "part or all of the requested memory range is already mapped"),
    FAKE_ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory region"),
    FAKE_ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    FAKE_ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    FAKE_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    FAKE_ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};

const ErrorText* find(CUresult code) {
  for (const ErrorText& error : kErrors) {
    if (error.code == code) return &error;
  }
  return nullptr;
}

CUresult tell(CUresult code, const char** out, const char* ErrorText::*part) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* const error = find(code);
  *out = error == nullptr ? nullptr : error->*part;
  return error == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace
}  // namespace fake

using namespace fake;

CUresult cuGetErrorName(CUresult code, const char** out) {
  return enter("cuGetErrorName", Need::kNothing, [&](Driver&) { return tell(code, out, &ErrorText::name); });
}
CUresult cuGetErrorString(CUresult code, const char** out) {
  return enter("cuGetErrorString", Need::kNothing, [&](Driver&) { return tell(code, out, &ErrorText::text); });
}
