// Memory of CUDA graphs. Allocation nodes take nothing until their graph is first launched (or uploaded); then the
// driver takes it all at once, from a pool of its own a device, and keeps it until cuDeviceGraphMemTrim. So an
// executable graph is promised for at its launch. A program that never makes an allocation node pays one load and one
// branch a launch.
#pragma once

#include "shim/driver/call.h"
#include "shim/driver/step.h"

namespace gpucap::driver::graph {

// Set at the first allocation node of the process: before that no graph can hold memory.
extern std::atomic<bool> memory_nodes_seen;
inline void see_memory_nodes() { memory_nodes_seen.store(true, std::memory_order_relaxed); }
inline bool no_memory_nodes() { return !memory_nodes_seen.load(std::memory_order_relaxed); }

// Notes what the executable will take when it is launched.
void instantiated(CUgraph graph, CUgraphExec exec);
// Out of the books before the driver is called, since another thread may be given the same handle at once; *record is
// what to put back if the driver refuses (space kNone: nothing).
void begin_destroy(CUgraphExec exec, core::Record* record);
void put_back(const core::Record& record);
void trimmed(CUdevice device);

// Makes the driver give back what graphs keep without use.
void reclaim_graphs(Device& device);
// What the graph pool of the device holds now; true if its charge changed. Part of every look.
bool refresh(Process& process, Device& device);

class LaunchStep {
 public:
  Go begin(Api api, CUgraphExec exec);
  void end(CUresult result);
  CUresult refuse() { return refuse_by_cap(*process_, *device_, api_, promised_); }

 private:
  Process* process_ = nullptr;
  Device* device_ = nullptr;
  Api api_ = Api::kNone;
  CUgraphExec exec_ = nullptr;
  uint64_t promised_ = 0;
};

template <typename Function>
CUresult add_memory_node(const Call<Function>& call) {
  see_memory_nodes();
  return call();
}

template <typename Function>
CUresult add_node(const Call<Function>& call, const CUgraphNodeParams* params) {
  if (params != nullptr && params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) see_memory_nodes();
  return call();
}

template <typename Function>
CUresult instantiate(const Call<Function>& call, CUgraphExec* exec, CUgraph graph) {
  const CUresult result = call();
  if (result == CUDA_SUCCESS && exec != nullptr) instantiated(graph, *exec);
  return result;
}

template <typename Function>
CUresult launch(const Call<Function>& call, CUgraphExec exec) {
  if (no_memory_nodes()) return call();
  LaunchStep step;
  const Go go = step.begin(call.api(), exec);
  if (go == Go::kPass) return call();
  if (go == Go::kRefuse) return step.refuse();
  const CUresult result = call.timed(Timing::kEach);
  step.end(result);
  return result;
}

template <typename Function>
CUresult destroy(const Call<Function>& call, CUgraphExec exec) {
  if (no_memory_nodes()) return call();
  core::Record record;
  begin_destroy(exec, &record);
  const CUresult result = call();
  if (result != CUDA_SUCCESS && record.space != core::Space::kNone) put_back(record);
  return result;
}

template <typename Function>
CUresult trim(const Call<Function>& call, CUdevice device) {
  const CUresult result = call();
  trimmed(device);
  return result;
}

}  // namespace gpucap::driver::graph
