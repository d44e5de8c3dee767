// Graphs and their nodes. See graph.h; instantiation, launch and what it reserves are in graph_exec.cpp.
#include "tests/fake_cuda/graph.h"

#include "tests/fake_cuda/context.h"

namespace fake {
namespace {

std::set<Graph*>& graphs() {
  static std::set<Graph*>& all = *new std::set<Graph*>;
  return all;
}

Node& add(Graph& graph, CUgraphNodeType type) {
  Node& node = *graph.nodes.emplace_back(std::make_unique<Node>());
  node.type = type;
  return node;
}

Graph* as_graph(CUgraph handle) {
  auto* const graph = reinterpret_cast<Graph*>(handle);
  return graphs().count(graph) != 0 ? graph : nullptr;
}

CUresult add_node(CUgraphNode* out, CUgraph handle, CUgraphNodeType type, CUfunction function = nullptr) {
  Graph* const graph = as_graph(handle);
  if (out == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Node& node = add(*graph, type);
  node.function = function;
  *out = reinterpret_cast<CUgraphNode>(&node);
  return CUDA_SUCCESS;
}

CUresult add_allocation(Driver& driver, CUgraphNode* out, CUgraph handle, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  Graph* const graph = as_graph(handle);
  if (out == nullptr || graph == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (params->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  uint64_t address = 0;
  const CUresult result = capture_allocation(driver, *graph, params->poolProps.location.id, params->bytesize, &address);
  if (result != CUDA_SUCCESS) return result;
  params->dptr = address;
  *out = reinterpret_cast<CUgraphNode>(graph->nodes.back().get());
  return CUDA_SUCCESS;
}

CUresult add_free(Driver& driver, CUgraphNode* out, CUgraph handle, CUdeviceptr address) {
  Graph* const graph = as_graph(handle);
  if (out == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = capture_free(driver, *graph, address);
  if (result == CUDA_SUCCESS) *out = reinterpret_cast<CUgraphNode>(graph->nodes.back().get());
  return result;
}

CUresult add_any(Driver& driver, CUgraphNode* out, CUgraph graph, CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    CUDA_MEM_ALLOC_NODE_PARAMS same{};
    same.poolProps = params->alloc.poolProps;
    same.bytesize = params->alloc.bytesize;
    const CUresult result = add_allocation(driver, out, graph, &same);
    if (result == CUDA_SUCCESS) params->alloc.dptr = same.dptr;
    return result;
  }
  if (params->type == CU_GRAPH_NODE_TYPE_MEM_FREE) return add_free(driver, out, graph, params->free.dptr);
  return add_node(out, graph, params->type, params->type == CU_GRAPH_NODE_TYPE_KERNEL ? params->kernel.func : nullptr);
}

}  // namespace

NodeMemory::~NodeMemory() {
  if (extent.fd >= 0) Backing::discard(address, extent.bytes);
  if (address != 0) Backing::release(address, round_up(bytes, kBlockBytes));
}

Graph* new_graph() {
  auto* const graph = new Graph;
  graphs().insert(graph);
  return graph;
}

void delete_graph(Graph* graph) {
  graphs().erase(graph);
  delete graph;
}

CUresult capture_allocation(Driver& driver, Graph& graph, int device, uint64_t bytes, uint64_t* address) {
  if (bytes == 0 || bytes >= kAbsurdBytes) return CUDA_ERROR_INVALID_VALUE;
  if (driver.device(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  auto memory = std::make_shared<NodeMemory>();
  memory->address = Backing::reserve(round_up(bytes, kBlockBytes), kBlockBytes, 0);
  memory->bytes = bytes;
  if (memory->address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = memory->address;
  Node& node = add(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  node.memory = std::move(memory);
  node.device = device;
  return CUDA_SUCCESS;
}

CUresult capture_free(Driver& driver, Graph& graph, uint64_t address) {
  bool known = driver.ranges.count(address) != 0;  // memory from outside may be freed by a graph
  for (const auto& node : graph.nodes) known |= node->memory != nullptr && node->memory->address == address;
  if (!known) return CUDA_ERROR_INVALID_VALUE;
  add(graph, CU_GRAPH_NODE_TYPE_MEM_FREE).freed_address = address;
  return CUDA_SUCCESS;
}

void capture_other(Graph& graph, CUgraphNodeType type, CUfunction function) { add(graph, type).function = function; }

}  // namespace fake

using namespace fake;

CUresult cuGraphCreate(CUgraph* graph, unsigned int flags) {
  return enter("cuGraphCreate", Need::kInitialised, [&](Driver&) {
    if (graph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *graph = reinterpret_cast<CUgraph>(new_graph());
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphDestroy(CUgraph graph) {
  return enter("cuGraphDestroy", Need::kInitialised, [&](Driver&) {
    if (as_graph(graph) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    delete_graph(as_graph(graph));
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                                CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return enter("cuGraphAddMemAllocNode", Need::kInitialised,
               [&](Driver& d) { return add_allocation(d, node, graph, params); });
}
CUresult cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t, CUdeviceptr dptr) {
  return enter("cuGraphAddMemFreeNode", Need::kInitialised, [&](Driver& d) { return add_free(d, node, graph, dptr); });
}
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return enter("cuGraphMemAllocNodeGetParams", Need::kInitialised, [&](Driver&) {
    const auto* const node = reinterpret_cast<const Node*>(handle);
    if (node == nullptr || params == nullptr || node->memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *params = {};
    params->poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params->poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    params->poolProps.location.id = node->device;
    params->bytesize = node->memory->bytes;
    params->dptr = node->memory->address;
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t) {
  return enter("cuGraphAddEmptyNode", Need::kInitialised,
               [&](Driver&) { return add_node(node, graph, CU_GRAPH_NODE_TYPE_EMPTY); });
}
CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                                 const CUDA_KERNEL_NODE_PARAMS* params) {
  return enter("cuGraphAddKernelNode_v2", Need::kInitialised, [&](Driver&) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE
                             : add_node(node, graph, CU_GRAPH_NODE_TYPE_KERNEL, params->func);
  });
}
CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                              const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return enter("cuGraphAddKernelNode", Need::kInitialised, [&](Driver&) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE
                             : add_node(node, graph, CU_GRAPH_NODE_TYPE_KERNEL, params->func);
  });
}
CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t, const CUDA_MEMCPY3D*,
                              CUcontext) {
  return enter("cuGraphAddMemcpyNode", Need::kInitialised,
               [&](Driver&) { return add_node(node, graph, CU_GRAPH_NODE_TYPE_MEMCPY); });
}
CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                              const CUDA_MEMSET_NODE_PARAMS*, CUcontext) {
  return enter("cuGraphAddMemsetNode", Need::kInitialised,
               [&](Driver&) { return add_node(node, graph, CU_GRAPH_NODE_TYPE_MEMSET); });
}
CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t, CUgraphNodeParams* params) {
  return enter("cuGraphAddNode", Need::kInitialised, [&](Driver& d) { return add_any(d, node, graph, params); });
}
CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode*, const CUgraphEdgeData*, size_t,
                           CUgraphNodeParams* params) {
  return enter("cuGraphAddNode_v2", Need::kInitialised, [&](Driver& d) { return add_any(d, node, graph, params); });
}
CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  return enter("cuGraphGetNodes", Need::kInitialised, [&](Driver&) {
    Graph* const graph = as_graph(handle);
    if (graph == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; nodes != nullptr && i < *count; ++i) {
      nodes[i] = i < graph->nodes.size() ? reinterpret_cast<CUgraphNode>(graph->nodes[i].get()) : nullptr;
    }
    *count = graph->nodes.size();
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  return enter("cuGraphNodeGetType", Need::kInitialised, [&](Driver&) {
    if (node == nullptr || type == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *type = reinterpret_cast<const Node*>(node)->type;
    return CUDA_SUCCESS;
  });
}
