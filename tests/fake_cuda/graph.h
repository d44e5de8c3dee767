// Graphs, as far as memory goes: allocation nodes take nothing when they are made or instantiated; the first launch
// reserves what the graph needs at its fullest, in 32 MiB steps, and that stays until cuDeviceGraphMemTrim. Nodes are
// taken to run in the order in which they were added. Under the driver's lock.
#pragma once

#include <memory>
#include <vector>

#include "tests/fake_cuda/driver.h"

namespace fake {

// The address that an allocation node was promised, with its backing once the graph has run.
struct NodeMemory {
  uint64_t address = 0;
  uint64_t bytes = 0;
  Extent extent;
  ~NodeMemory();
};

struct Node {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  std::shared_ptr<NodeMemory> memory;  // of an allocation
  uint64_t freed_address = 0;          // of a free
  int device = 0;
  CUfunction function = nullptr;  // of a kernel
};

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
};

Graph* new_graph();
void delete_graph(Graph* graph);

CUresult capture_allocation(Driver& driver, Graph& graph, int device, uint64_t bytes, uint64_t* address);
CUresult capture_free(Driver& driver, Graph& graph, uint64_t address);
void capture_other(Graph& graph, CUgraphNodeType type, CUfunction function);

// cuMemFree of memory that a launched graph has left allocated.
CUresult free_graph_memory(Driver& driver, uint64_t address);
// Everything that graphs hold on the device, when its primary context ends.
void drop_graph_memory(Driver& driver, int device);

}  // namespace fake
