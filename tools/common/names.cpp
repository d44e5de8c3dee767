// Words for numbers: see names.h. The results are those that memory calls return; cuda.h is not needed to build the
// tools.
#include "tools/common/names.h"

#include "wire/layout.h"

namespace gpucap::tools {
namespace {

constexpr struct {
  int32_t number;
  const char* name;
} kResults[] = {
    {0, "CUDA_SUCCESS"},
    {1, "CUDA_ERROR_INVALID_VALUE"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY"},
    {3, "CUDA_ERROR_NOT_INITIALIZED"},
    {4, "CUDA_ERROR_DEINITIALIZED"},
    {100, "CUDA_ERROR_NO_DEVICE"},
    {101, "CUDA_ERROR_INVALID_DEVICE"},
    {201, "CUDA_ERROR_INVALID_CONTEXT"},
    {205, "CUDA_ERROR_MAP_FAILED"},
    {206, "CUDA_ERROR_UNMAP_FAILED"},
    {208, "CUDA_ERROR_ALREADY_MAPPED"},
    {211, "CUDA_ERROR_NOT_MAPPED"},
    {400, "CUDA_ERROR_INVALID_HANDLE"},
    {401, "CUDA_ERROR_ILLEGAL_STATE"},
    {500, "CUDA_ERROR_NOT_FOUND"},
    {600, "CUDA_ERROR_NOT_READY"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
    {719, "CUDA_ERROR_LAUNCH_FAILED"},
    {800, "CUDA_ERROR_NOT_PERMITTED"},
    {801, "CUDA_ERROR_NOT_SUPPORTED"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
    {999, "CUDA_ERROR_UNKNOWN"},
};

}  // namespace

std::string operation_name(uint8_t operation) {
  switch (operation) {
    case GPUCAP_OP_CHARGE:
      return "charge";
    case GPUCAP_OP_RELEASE:
      return "release";
    case GPUCAP_OP_REFUSE:
      return "refuse";
    case GPUCAP_OP_FAIL:
      return "fail";
    case GPUCAP_OP_DRIVER:
      return "driver";
    case GPUCAP_OP_LIMIT:
      return "limit";
    case GPUCAP_OP_WAIT:
      return "wait";
    case GPUCAP_OP_OBSERVE:
      return "observe";
    default:
      return std::to_string(operation);
  }
}

std::string kind_name(uint8_t kind) {
  switch (kind) {
    case GPUCAP_KIND_NONE:
      return "none";
    case GPUCAP_KIND_LINEAR:
      return "linear";
    case GPUCAP_KIND_ARRAY:
      return "array";
    case GPUCAP_KIND_POOL:
      return "pool";
    case GPUCAP_KIND_VMM:
      return "vmm";
    case GPUCAP_KIND_MANAGED:
      return "managed";
    case GPUCAP_KIND_CONTEXT:
      return "context";
    default:
      return std::to_string(kind);
  }
}

std::string truth_name(uint32_t truth) {
  switch (truth) {
    case GPUCAP_TRUTH_NONE:
      return "none";
    case GPUCAP_TRUTH_NVML:
      return "nvml";
    case GPUCAP_TRUTH_DEVICE_DIFF:
      return "device_difference";
    default:
      return std::to_string(truth);
  }
}

std::string result_name(int32_t result) {
  for (const auto& entry : kResults) {
    if (entry.number == result) return entry.name;
  }
  return std::to_string(result);
}

std::string on_limit_name(uint32_t on_limit) {
  switch (on_limit) {
    case GPUCAP_ON_LIMIT_DENY:
      return "deny";
    case GPUCAP_ON_LIMIT_WAIT:
      return "wait";
    case GPUCAP_ON_LIMIT_OBSERVE:
      return "observe";
    default:
      return std::to_string(on_limit);
  }
}

std::string limit_source_name(uint32_t source) {
  switch (source) {
    case GPUCAP_LIMIT_FROM_NOWHERE:
      return "none";
    case GPUCAP_LIMIT_FROM_ENVIRONMENT:
      return "environment";
    case GPUCAP_LIMIT_FROM_POLICY:
      return "policy";
    case GPUCAP_LIMIT_FROM_CONTROL:
      return "set";
    default:
      return std::to_string(source);
  }
}

std::string refused_by_name(uint32_t refused_by) {
  switch (refused_by) {
    case GPUCAP_REFUSED_BY_NOTHING:
      return "none";
    case GPUCAP_REFUSED_BY_CAP:
      return "cap";
    case GPUCAP_REFUSED_BY_GROUP:
      return "group";
    case GPUCAP_REFUSED_BY_CARD:
      return "card";
    default:
      return std::to_string(refused_by);
  }
}

std::vector<std::string> operation_names() {
  std::vector<std::string> names;
  for (uint8_t operation = GPUCAP_OP_CHARGE; operation <= GPUCAP_OP_OBSERVE; ++operation) {
    names.push_back(operation_name(operation));
  }
  return names;
}

std::vector<std::string> result_names() {
  std::vector<std::string> names;
  for (const auto& entry : kResults) names.emplace_back(entry.name);
  return names;
}

int32_t result_number(const std::string& name) {
  for (const auto& entry : kResults) {
    if (entry.name == name) return entry.number;
  }
  return -1;
}

}  // namespace gpucap::tools
