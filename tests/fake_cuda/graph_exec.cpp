// Executable graphs: what a launch reserves, what stays allocated after it, and the trim that gives it back.
#include <algorithm>
#include <utility>

#include "tests/fake_cuda/context.h"
#include "tests/fake_cuda/graph.h"
#include "tests/fake_cuda/linear.h"
#include "tests/fake_cuda/module.h"
#include "tests/fake_cuda/stream.h"

namespace fake {
namespace {

struct Exec {
  std::vector<Node> nodes;  // copies, which share the memory of the originals
  int device = 0;
  unsigned long long flags = 0;
  uint64_t needed_bytes = 0;
  uint64_t held_bytes = 0;
  std::map<uint64_t, uint64_t> live;  // address -> bytes that the last launch left allocated
  bool destroyed = false;             // waits for them
};

std::set<Exec*>& execs() {
  static std::set<Exec*>& all = *new std::set<Exec*>;
  return all;
}

Exec* as_exec(CUgraphExec handle) {
  auto* const exec = reinterpret_cast<Exec*>(handle);
  return execs().count(exec) != 0 && !exec->destroyed ? exec : nullptr;
}

// The most that is allocated at once, each allocation put in the first gap that it fits.
uint64_t highest_use(const std::vector<Node>& nodes) {
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> placed;  // offset -> (bytes, address)
  uint64_t highest = 0;
  for (const Node& node : nodes) {
    if (node.memory != nullptr) {
      const uint64_t bytes = round_up(node.memory->bytes, kGranuleBytes);
      uint64_t offset = 0;
      for (const auto& [start, block] : placed) {
        if (offset + bytes <= start) break;
        offset = start + block.first;
      }
      placed[offset] = {bytes, node.memory->address};
      highest = std::max(highest, offset + bytes);
    } else if (node.freed_address != 0) {
      std::erase_if(placed, [&](const auto& entry) { return entry.second.second == node.freed_address; });
    }
  }
  return round_up(highest, kPoolChunkBytes);
}

void note_reserved(Device& device, int64_t change) {
  device.graph_reserved_bytes += static_cast<uint64_t>(change);
  device.graph_reserved_high_bytes = std::max(device.graph_reserved_high_bytes, device.graph_reserved_bytes);
}

CUresult reserve(Driver& driver, Exec& exec) {
  if (exec.held_bytes >= exec.needed_bytes) return CUDA_SUCCESS;
  Device& device = *driver.device(exec.device);
  const uint64_t from_cache = std::min(device.graph_cached_bytes, exec.needed_bytes - exec.held_bytes);
  const uint64_t fresh = exec.needed_bytes - exec.held_bytes - from_cache;
  if (!driver.take(exec.device, fresh)) return CUDA_ERROR_OUT_OF_MEMORY;
  device.graph_cached_bytes -= from_cache;
  note_reserved(device, static_cast<int64_t>(fresh));
  exec.held_bytes = exec.needed_bytes;
  for (const Node& node : exec.nodes) {
    if (node.memory == nullptr || node.memory->extent.fd >= 0) continue;
    const Extent extent = driver.backing.create(round_up(node.memory->bytes, kBlockBytes));
    if (extent.fd < 0 || !Backing::map_at(node.memory->address, extent)) return CUDA_ERROR_OUT_OF_MEMORY;
    node.memory->extent = extent;
  }
  return CUDA_SUCCESS;
}

CUresult launch(Driver& driver, CUgraphExec handle, CUstream stream, bool per_thread, bool upload_only) {
  Exec* const exec = as_exec(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (find_stream(driver, stream, per_thread) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!upload_only && !exec->live.empty()) {
    if ((exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) == 0) return CUDA_ERROR_INVALID_VALUE;
    const std::map<uint64_t, uint64_t> left = exec->live;
    for (const auto& entry : left) free_graph_memory(driver, entry.first);
  }
  const CUresult reserved = reserve(driver, *exec);
  if (reserved != CUDA_SUCCESS || upload_only) return reserved;
  Device& device = *driver.device(exec->device);
  for (const Node& node : exec->nodes) {
    if (node.type == CU_GRAPH_NODE_TYPE_KERNEL) {
      const CUresult prepared = prepare_launch(driver, node.function);
      if (prepared != CUDA_SUCCESS) return prepared;
    } else if (node.memory != nullptr) {
      Range range;
      range.kind = RangeKind::kGraph;
      range.bytes = node.memory->bytes;
      range.device = node.device;
      range.owner = reinterpret_cast<uint64_t>(exec);
      driver.ranges[node.memory->address] = range;
      exec->live[node.memory->address] = node.memory->bytes;
      device.graph_used_bytes += node.memory->bytes;
      device.graph_used_high_bytes = std::max(device.graph_used_high_bytes, device.graph_used_bytes);
    } else if (node.freed_address != 0) {
      free_any(driver, node.freed_address);
    }
  }
  return CUDA_SUCCESS;
}

CUresult instantiate(CUgraphExec* out, CUgraph handle, unsigned long long flags) {
  if (out == nullptr || handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto* const graph = reinterpret_cast<const Graph*>(handle);
  auto* const exec = new Exec;
  exec->flags = flags;
  for (const auto& node : graph->nodes) {
    exec->nodes.push_back(*node);
    if (node->memory != nullptr) exec->device = node->device;
  }
  exec->needed_bytes = highest_use(exec->nodes);
  execs().insert(exec);
  *out = reinterpret_cast<CUgraphExec>(exec);
  return CUDA_SUCCESS;
}

void retire(Driver& driver, Exec* exec) {
  driver.device(exec->device)->graph_cached_bytes += exec->held_bytes;
  execs().erase(exec);
  delete exec;
}

CUresult trim(Driver& driver, CUdevice ordinal) {
  Device* const device = driver.device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  uint64_t unused = std::exchange(device->graph_cached_bytes, 0);
  for (Exec* const exec : execs()) {
    if (exec->device == ordinal && exec->live.empty()) unused += std::exchange(exec->held_bytes, 0);
  }
  driver.give(ordinal, unused);
  note_reserved(*device, -static_cast<int64_t>(unused));
  return CUDA_SUCCESS;
}

CUresult get_attribute(Driver& driver, CUdevice ordinal, CUgraphMem_attribute attribute, void* value) {
  const Device* const device = driver.device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto& out = *static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
      return out = device->graph_used_bytes, CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
      return out = device->graph_used_high_bytes, CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
      return out = device->graph_reserved_bytes, CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      return out = device->graph_reserved_high_bytes, CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult reset_attribute(Driver& driver, CUdevice ordinal, CUgraphMem_attribute attribute, const void* value) {
  Device* const device = driver.device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr || *static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) {
    device->graph_used_high_bytes = device->graph_used_bytes;
  } else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
    device->graph_reserved_high_bytes = device->graph_reserved_bytes;
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult free_graph_memory(Driver& driver, uint64_t address) {
  const Range range = driver.ranges.at(address);
  auto* const exec = reinterpret_cast<Exec*>(range.owner);
  driver.ranges.erase(address);
  exec->live.erase(address);
  driver.device(range.device)->graph_used_bytes -= range.bytes;
  if (exec->destroyed && exec->live.empty()) retire(driver, exec);
  return CUDA_SUCCESS;
}

void drop_graph_memory(Driver& driver, int device) {
  const std::vector<Exec*> all(execs().begin(), execs().end());
  for (Exec* const exec : all) {
    if (exec->device != device) continue;
    const std::map<uint64_t, uint64_t> left = exec->live;
    for (const auto& entry : left) free_graph_memory(driver, entry.first);
  }
  trim(driver, device);
}

}  // namespace fake

using namespace fake;

CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode*, char*, size_t) {
  return enter("cuGraphInstantiate", Need::kInitialised, [&](Driver&) { return instantiate(exec, graph, 0); });
}
CUresult cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode*, char*, size_t) {
  return enter("cuGraphInstantiate_v2", Need::kInitialised, [&](Driver&) { return instantiate(exec, graph, 0); });
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return enter("cuGraphInstantiateWithFlags", Need::kInitialised,
               [&](Driver&) { return instantiate(exec, graph, flags); });
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return enter("cuGraphInstantiateWithParams", Need::kInitialised, [&](Driver&) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : instantiate(exec, graph, params->flags);
  });
}
CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return enter("cuGraphInstantiateWithParams_ptsz", Need::kInitialised, [&](Driver&) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : instantiate(exec, graph, params->flags);
  });
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return enter("cuGraphLaunch", Need::kInitialised, [&](Driver& d) { return launch(d, exec, stream, false, false); });
}
CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
  return enter("cuGraphLaunch_ptsz", Need::kInitialised,
               [&](Driver& d) { return launch(d, exec, stream, true, false); });
}
CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  return enter("cuGraphUpload", Need::kInitialised, [&](Driver& d) { return launch(d, exec, stream, false, true); });
}
CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) {
  return enter("cuGraphUpload_ptsz", Need::kInitialised,
               [&](Driver& d) { return launch(d, exec, stream, true, true); });
}
CUresult cuGraphExecDestroy(CUgraphExec handle) {
  return enter("cuGraphExecDestroy", Need::kInitialised, [&](Driver& d) {
    Exec* const exec = as_exec(handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    exec->destroyed = true;
    if (exec->live.empty()) retire(d, exec);
    return CUDA_SUCCESS;
  });
}
CUresult cuDeviceGraphMemTrim(CUdevice device) {
  return enter("cuDeviceGraphMemTrim", Need::kInitialised, [&](Driver& d) { return trim(d, device); });
}
CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void* value) {
  return enter("cuDeviceGetGraphMemAttribute", Need::kInitialised,
               [&](Driver& d) { return get_attribute(d, device, attribute, value); });
}
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void* value) {
  return enter("cuDeviceSetGraphMemAttribute", Need::kInitialised,
               [&](Driver& d) { return reset_attribute(d, device, attribute, value); });
}
