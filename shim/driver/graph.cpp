#include "shim/driver/graph.h"

#include "shim/core/pool_model.h"
#include "shim/driver/capture.h"
#include "shim/driver/reclaim.h"
#include "shim/process/pages.h"

namespace gpucap::driver::graph {

std::atomic<bool> memory_nodes_seen{false};

namespace {

constexpr int kDeepest = 16;  // child graphs within child graphs

// What is charged for the graph pool of each device, and how often it was trimmed: an executable that was launched
// since the last trim has its memory already.
struct GraphPool {
  std::mutex lock;
  uint64_t charged = 0;
  std::atomic<uint32_t> trims{1};
};
GraphPool graph_pools[kMaxDevices];

struct Need {
  uint64_t bytes = 0;
  int device = -1;
};

void add_nodes_of(CUgraph graph, int depth, Need* need);

void add_node_of(CUgraphNode node, int depth, Need* need) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  if (real().cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) return;
  if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
    CUgraph child = nullptr;
    if (real().cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS) add_nodes_of(child, depth + 1, need);
    return;
  }
  if (type != CU_GRAPH_NODE_TYPE_MEM_ALLOC) return;
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  if (real().cuGraphMemAllocNodeGetParams(node, &params) != CUDA_SUCCESS) return;
  if (params.poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return;
  need->device = params.poolProps.location.id;
  need->bytes += core::round_up(params.bytesize, core::PoolModel::kGranule);
}

void add_nodes_of(CUgraph graph, int depth, Need* need) {
  size_t count = 0;
  if (depth > kDeepest || real().cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS || count == 0) return;
  const core::PageSource pages = kernel_pages();
  const size_t bytes = count * sizeof(CUgraphNode);
  auto* nodes = static_cast<CUgraphNode*>(pages.take(bytes));
  if (nodes == nullptr) return;
  if (real().cuGraphGetNodes(graph, nodes, &count) == CUDA_SUCCESS)
    for (size_t i = 0; i < count; ++i) add_node_of(nodes[i], depth, need);
  pages.give_back(nodes, bytes);
}

}  // namespace

bool refresh(Process&, Device& device) {
  if (no_memory_nodes()) return false;
  const UnnoticedByCaptures unnoticed;
  GraphPool& pool = graph_pools[device.ordinal];
  const std::lock_guard guard(pool.lock);
  cuuint64_t reserved = 0;
  if (real().cuDeviceGetGraphMemAttribute(static_cast<CUdevice>(device.ordinal), CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
                                          &reserved) != CUDA_SUCCESS)
    return false;
  const int64_t change = static_cast<int64_t>(reserved) - static_cast<int64_t>(pool.charged);
  if (change == 0) return false;
  if (change < 0) mark_stale(device);  // before the charge goes: see quota.cpp, try_reserve_fresh
  pool.charged = reserved;
  charge(device, GPUCAP_KIND_POOL, change);
  return true;
}

void instantiated(CUgraph graph, CUgraphExec exec) {
  Process* process = Process::get();
  if (process == nullptr || no_memory_nodes()) return;
  Need need;
  add_nodes_of(graph, 0, &need);
  Device* device = process->device(need.device);
  if (device == nullptr) return;
  core::Record record;
  record.space = core::Space::kGraphExec;
  record.key = reinterpret_cast<uint64_t>(exec);
  record.bytes = core::round_up(need.bytes, core::PoolModel::kStep);  // packed, in the steps of a pool (measured)
  record.device = static_cast<uint8_t>(device->ordinal);
  note(*process, record);
}

void begin_destroy(CUgraphExec exec, core::Record* record) {
  Process* process = Process::get();
  if (process == nullptr || !process->table().take(core::Space::kGraphExec, reinterpret_cast<uint64_t>(exec), record))
    *record = core::Record{};
}

void put_back(const core::Record& record) { note(*Process::get(), record); }

void trimmed(CUdevice ordinal) {
  Process* process = Process::get();
  Device* device = process == nullptr ? nullptr : process->device(ordinal);
  if (device == nullptr || !device->active.load(std::memory_order_acquire)) return;
  graph_pools[ordinal].trims.fetch_add(1);
  refresh(*process, *device);
}

void reclaim_graphs(Device& device) {
  if (no_memory_nodes()) return;
  const UnnoticedByCaptures unnoticed;
  begin_flight(device);
  real().cuDeviceGraphMemTrim(static_cast<CUdevice>(device.ordinal));
  trimmed(static_cast<CUdevice>(device.ordinal));
  end_flight(device);
}

Go LaunchStep::begin(Api api, CUgraphExec exec) {
  process_ = Process::get();
  core::Record record;
  if (process_ == nullptr ||
      !process_->table().find(core::Space::kGraphExec, reinterpret_cast<uint64_t>(exec), &record))
    return Go::kPass;
  device_ = process_->device(record.device);
  api_ = api;
  exec_ = exec;
  // Its memory is there since an earlier launch, unless somebody trimmed.
  if (record.link == graph_pools[record.device].trims.load()) return Go::kPass;
  promised_ = record.bytes;
  if (reserve(*process_, *device_, {promised_, static_cast<uint16_t>(api_), reclaim}) == Verdict::kRefused)
    return Go::kRefuse;
  begin_flight(*device_);
  return Go::kCharge;
}

void LaunchStep::end(CUresult result) {
  refresh(*process_, *device_);
  settle(*device_, GPUCAP_KIND_POOL, promised_, 0);
  end_flight(*device_);
  if (result != CUDA_SUCCESS) return tell_failure(*process_, *device_, api_, GPUCAP_KIND_POOL, promised_, result);
  const auto set_trims = [](core::Record& record, void* trims) {
    record.link = *static_cast<uint32_t*>(trims);
    return false;
  };
  uint32_t trims = graph_pools[device_->ordinal].trims.load();
  core::Record after;
  process_->table().update(core::Space::kGraphExec, reinterpret_cast<uint64_t>(exec_), set_trims, &trims, &after);
  tell_charge(*process_, *device_, api_, GPUCAP_KIND_POOL, reinterpret_cast<uint64_t>(exec_), promised_);
}

}  // namespace gpucap::driver::graph
