// Memory of CUDA graphs: allocation nodes added and captured, alone and in a child graph, launched and uploaded. The
// driver takes their memory when the executable is first launched or uploaded, and keeps it until it is trimmed.
#include <cstring>

#include "way.h"

namespace ways {
namespace {

// An executable that was launched, and what its allocation nodes left allocated.
struct Launched {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  std::vector<CUdeviceptr> left;
};

void drop(Launched* launched) {
  if (launched->exec != nullptr) cuGraphExecDestroy(launched->exec);
  if (launched->graph != nullptr) cuGraphDestroy(launched->graph);
  delete launched;
}

CUresult add_allocation(CUgraph graph, size_t bytes, CUgraphNode* node, CUdeviceptr* address) {
  CUDA_MEM_ALLOC_NODE_PARAMS params;
  std::memset(&params, 0, sizeof(params));
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  params.bytesize = bytes;
  const CUresult result = cuGraphAddMemAllocNode(node, graph, nullptr, 0, &params);
  *address = params.dptr;
  return result;
}

// Instantiates and starts it. On failure everything is dropped.
CUresult start(Launched* launched, bool upload, Value* out) {
  CUresult result = call_by_name("cuGraphInstantiateWithFlags", &launched->exec, launched->graph, 0ull);
  if (result == CUDA_SUCCESS)
    result = upload ? cuGraphUpload(launched->exec, nullptr) : cuGraphLaunch(launched->exec, nullptr);
  if (result == CUDA_SUCCESS) result = synchronize();
  if (result != CUDA_SUCCESS) {
    drop(launched);
  } else {
    *out = reinterpret_cast<Value>(launched);
  }
  return result;
}

CUresult give_back(Value value) {
  auto* const launched = reinterpret_cast<Launched*>(value);
  CUresult result = CUDA_SUCCESS;
  for (const CUdeviceptr address : launched->left) {
    const CUresult freed = cuMemFree_v2(address);
    if (freed != CUDA_SUCCESS) result = freed;
  }
  drop(launched);
  return result;
}

CUresult trim() {
  const CUresult result = synchronize();
  return result != CUDA_SUCCESS ? result : cuDeviceGraphMemTrim(0);
}

Way graph_way(const std::string& name, std::function<CUresult(Value*)> take) {
  Way way;
  way.name = name;
  way.take = std::move(take);
  way.give_back = give_back;
  way.end = trim;
  return way;
}

// `count` nodes of `bytes`, each freed within the graph or left allocated.
CUresult take_added(Value* out, size_t bytes, size_t count, bool upload, bool freed_within) {
  auto* const launched = new Launched;
  CUresult result = cuGraphCreate(&launched->graph, 0);
  for (size_t i = 0; result == CUDA_SUCCESS && i < count; ++i) {
    CUgraphNode node = nullptr, free_node = nullptr;
    CUdeviceptr address = 0;
    result = add_allocation(launched->graph, bytes, &node, &address);
    if (result != CUDA_SUCCESS) break;
    if (freed_within) {
      result = cuGraphAddMemFreeNode(&free_node, launched->graph, &node, 1, address);
    } else if (!upload) {
      launched->left.push_back(address);
    }
  }
  if (result == CUDA_SUCCESS) return start(launched, upload, out);
  drop(launched);
  return result;
}

CUresult take_captured(Value* out) {
  static CUstream stream = nullptr;
  CUresult result = stream == nullptr ? cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS)
    result = call_by_name("cuStreamBeginCapture_v2", stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  if (result != CUDA_SUCCESS) return result;
  auto* const launched = new Launched;
  CUdeviceptr address = 0;
  result = cuMemAllocAsync(&address, kBlock, stream);
  const CUresult ended = cuStreamEndCapture(stream, &launched->graph);
  if (result == CUDA_SUCCESS) result = ended;
  if (result == CUDA_SUCCESS) {
    launched->left.push_back(address);
    return start(launched, false, out);
  }
  drop(launched);
  return result;
}

// A graph with allocation nodes may be a child only if the parent takes it over (CUDA 12.9 and later).
CUresult take_in_child(Value* out) {
#if CUDA_VERSION >= 12090
  auto* const launched = new Launched;
  CUgraph child = nullptr;
  CUgraphNode node = nullptr;
  CUdeviceptr address = 0;
  CUresult result = cuGraphCreate(&launched->graph, 0);
  if (result == CUDA_SUCCESS) result = cuGraphCreate(&child, 0);
  if (result == CUDA_SUCCESS) result = add_allocation(child, kBlock, &node, &address);
  if (result == CUDA_SUCCESS) {
    CUgraphNodeParams params;
    std::memset(&params, 0, sizeof(params));
    params.type = CU_GRAPH_NODE_TYPE_GRAPH;
    params.graph.graph = child;
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    result = call_by_name("cuGraphAddNode", &node, launched->graph, static_cast<const CUgraphNode*>(nullptr), size_t{0},
                          &params);
  }
  if (result == CUDA_SUCCESS) {
    launched->left.push_back(address);
    return start(launched, false, out);
  }
  drop(launched);
  return result;
#else
  static_cast<void>(out);
  return CUDA_ERROR_NOT_SUPPORTED;
#endif
}

Way within_one_graph() {
  Way way = graph_way("cuGraphAddMemAllocNode, one graph of twice the cap",
                      [](Value* out) { return take_added(out, kGib, 2 * world().cap_bytes / kGib, false, false); });
  way.step_bytes = 2 * world().cap_bytes;
  way.once_before = false;
  return way;
}

// The driver serves graphs that follow each other on a stream from the same memory, if it can.
Way one_after_the_other() {
  Way way = graph_way("many graphs that free what they allocate",
                      [](Value* out) { return take_added(out, kGib, 1, false, true); });
  way.step_bytes = kGib;
  way.refusal = Refusal::kMay;
  return way;
}

// Three quarters of the cap stay with the driver after the executable is gone; then as much is asked for elsewhere.
Way linear_after_graph() {
  Way way;
  way.name = "cuMemAlloc_v2 while the driver keeps graph memory";
  way.least_bytes = most_of_the_cap();  // what is kept without use is given back, and nothing refused for its sake
  way.once_before = false;
  way.take = [](Value* out) {
    static bool kept = false;
    if (!kept) {
      kept = true;
      Value graph = 0;
      const CUresult result = take_added(&graph, most_of_the_cap(), 1, false, true);
      if (result != CUDA_SUCCESS) return result;
      give_back(graph);
    }
    return cuMemAlloc_v2(out, kBlock);
  };
  way.give_back = free_linear;
  way.end = trim;
  return way;
}

}  // namespace

void add_graph_ways(Ways& ways) {
  ways.push_back(graph_way("cuGraphAddMemAllocNode, launched",
                           [](Value* out) { return take_added(out, kBlock, 1, false, false); }));
  ways.push_back(graph_way("cuGraphAddMemAllocNode, uploaded",
                           [](Value* out) { return take_added(out, kBlock, 1, true, false); }));
  // Uploaded, not launched: nothing of it is allocated yet, so the driver may give it back when it is trimmed for more.
  ways.back().refusal = Refusal::kMay;
  ways.push_back(graph_way("cuMemAllocAsync, captured", take_captured));
  if (!world().fake) {  // the fake driver's graphs have no children
    ways.push_back(graph_way("cuGraphAddMemAllocNode in a child graph", take_in_child));
    ways.back().optional = true;
  }
  ways.push_back(within_one_graph());
  ways.push_back(one_after_the_other());
  ways.push_back(linear_after_graph());
}

}  // namespace ways
