// A plugin that binds past preloaded symbols: opened with RTLD_DEEPBIND, or in a namespace of its own.
#include <cstdio>

#include "way.h"

namespace ways {
namespace {

using Take = int(unsigned long long*, size_t);
using GiveBack = int(unsigned long long);
Take* take_there = nullptr;
GiveBack* give_back_there = nullptr;

CUresult bind(void* plugin) {
  if (plugin == nullptr) {
    std::fprintf(stderr, "the plugin does not open: %s\n", dlerror());
    return CUDA_ERROR_NOT_FOUND;
  }
  take_there = reinterpret_cast<Take*>(dlsym(plugin, "gpucap_test_take"));
  give_back_there = reinterpret_cast<GiveBack*>(dlsym(plugin, "gpucap_test_give_back"));
  return take_there != nullptr && give_back_there != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

Way plugin_way(const std::string& name, std::function<void*(const char*)> open) {
  Way way;
  way.name = name;
  way.optional = true;
  way.begin = [open = std::move(open)] { return bind(open(world().plugin_path.c_str())); };
  way.take = [](Value* out) { return static_cast<CUresult>(take_there(out, kBlock)); };
  way.give_back = [](Value value) { return static_cast<CUresult>(give_back_there(value)); };
  return way;
}

}  // namespace

void add_plugin_ways(Ways& ways) {
  ways.push_back(plugin_way("cuMemAlloc_v2 from a plugin, RTLD_DEEPBIND",
                            [](const char* path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND); }));
  ways.push_back(plugin_way("cuMemAlloc_v2 from a plugin, dlmopen",
                            [](const char* path) { return dlmopen(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL); }));
  ways.back().refusal = Refusal::kMay;
}

}  // namespace ways
