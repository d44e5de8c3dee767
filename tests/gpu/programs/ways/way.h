// One way of taking device memory from the driver: how to take a piece of it, and how to give that back. The files
// beside this one list them by kind; ../every_way.cpp runs one a process. Nothing here knows of gpucap.
#pragma once

#include <dlfcn.h>

#include <functional>
#include <string>
#include <vector>

// The _v2 names are meant: without this cuda.h's macros would hide the old spellings beside them.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

namespace ways {

using Value = unsigned long long;
constexpr size_t kMib = size_t{1} << 20;
constexpr size_t kGib = size_t{1} << 30;
constexpr size_t kBlock = 64 * kMib;

enum class Refusal {
  kMust,   // twice the cap is asked for, so the cap has to say no
  kMay,    // the driver may serve all of it from less memory, or the way cannot be refused
  kNever,  // none of this is device memory of ours
};

struct Way {
  std::string name;
  size_t step_bytes = kBlock;  // asked for by one take
  std::function<CUresult(Value*)> take;
  std::function<CUresult(Value)> give_back;
  Refusal refusal = Refusal::kMust;
  size_t most_takes = 0;   // 0: until twice the cap was asked for
  size_t room_bytes = 0;   // not 0: one plain allocation first leaves only so much of the cap
  size_t least_bytes = 0;  // so much must be obtained before a refusal; 0: a quarter of the cap where that can be
  std::function<CUresult()> begin;  // before anything is measured
  std::function<CUresult()> end;    // when everything was given back: what lets the driver let go of it
  bool once_before = true;          // take and give back one before measuring: first uses cost the driver something
  bool kept_by_driver = false;      // what is given back stays with the driver, so it cannot be had again at the cap
  bool optional = false;            // a driver may not offer it: an error other than 2 of `begin` or the first take
  int threads = 1;
};

// The machine that the ways run on. Set once by main().
struct World {
  size_t cap_bytes = 0;
  bool fake = false;            // modules are written in the fake driver's language
  std::string self_path;        // of this program, to start another process of it
  std::string plugin_path;      // of a shared object with `gpucap_test_take` and `gpucap_test_give_back`
  CUdeviceptr scratch = 0;      // a few bytes that are there from the start
  CUcontext context = nullptr;  // the primary one
};
World& world();

template <typename Function>
Function* by_name(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// Calls an export that the header may not declare, or declares under another spelling.
template <typename... Parameters>
CUresult call_by_name(const char* name, Parameters... parameters) {
  auto* function = by_name<CUresult(Parameters...)>(name);
  return function == nullptr ? CUDA_ERROR_NOT_FOUND : function(parameters...);
}

// How many of 64 MiB fill three quarters of the cap: what is parked there has to go before as much is given elsewhere.
inline size_t most_of_the_cap() { return world().cap_bytes / 4 * 3 / kBlock * kBlock; }

CUresult free_linear(Value value);
CUresult synchronize();

using Ways = std::vector<Way>;
void add_linear_ways(Ways& ways);
void add_pool_ways(Ways& ways);
void add_vmm_ways(Ways& ways);
void add_array_ways(Ways& ways);
void add_graph_ways(Ways& ways);
void add_context_ways(Ways& ways);
void add_module_ways(Ways& ways);
void add_shared_ways(Ways& ways);
void add_plugin_ways(Ways& ways);
Ways all_ways();

// The other side of add_shared_ways: a process that imports what its parent gave it.
int import_and_hold(int argc, char** argv);

}  // namespace ways
