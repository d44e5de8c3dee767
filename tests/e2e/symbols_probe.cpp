// Asks the loader and the driver for functions in every way, and prints what came; run with and without gpucap, and the
// two outputs are compared. symbols_probe SCENARIO [arguments]. Built twice: without CUDA, and linked with the driver.
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <iostream>
#include <set>
#include <string>

#include "tests/e2e/symbols_look.h"

namespace {

void* open_or_die(const char* file, int flags) {
  void* handle = dlopen(file, flags);
  if (handle == nullptr) {
    std::printf("cannot open: %s\n", dlerror());
    std::fflush(stdout);
    _exit(4);
  }
  return handle;
}

template <typename Function>
Function function_of(void* handle, const char* name) {
  void* const found = dlsym(handle, name);
  Function function;
  std::memcpy(&function, &found, sizeof(function));
  return function;
}

void look_from_both(const char* stage, void* plugin) {
  const auto plugin_look = function_of<void (*)(const char*, void*)>(plugin, "plugin_look_around");
  look::look_around((std::string(stage) + ": the program").c_str(), dlopen(nullptr, RTLD_LAZY));
  plugin_look((std::string(stage) + ": the plugin").c_str(), plugin);
  for (const char* name : {"curl_easy_init", "cublasCreate_v2", "cu_own", "cudaOwn", "cuMemAlloc_v2"}) {
    if (std::string(name) == "cuMemAlloc_v2" && dlsym(plugin, "plugin_take") != nullptr) continue;  // the driver's
    std::printf("%s: calling the plugin's %s gives %d\n", stage, name, function_of<int (*)()>(plugin, name)());
  }
}

// lookups PLUGIN: before CUDA is in the process, with a driver that only its opener sees, and with one that all see.
int lookups(const char* plugin_file) {
  void* plugin = open_or_die(plugin_file, RTLD_NOW | RTLD_LOCAL);
  look_from_both("at first", plugin);
  open_or_die("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  open_or_die("libcudart.so.12", RTLD_NOW | RTLD_LOCAL);
  look_from_both("after RTLD_LOCAL", plugin);
  open_or_die("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  open_or_die("libcudart.so.12", RTLD_NOW | RTLD_GLOBAL);
  look_from_both("after RTLD_GLOBAL", plugin);
  return 0;
}

// proc TABLE: cuGetProcAddress and its _v2 as the first calls of the program; every name, version and stream flavour.
int proc(const char* table) {
  void* driver = open_or_die("libcuda.so.1", RTLD_NOW);
  using Get = int (*)(const char*, void**, int, uint64_t);
  using GetV2 = int (*)(const char*, void**, int, uint64_t, int*);
  const auto get = function_of<Get>(driver, "cuGetProcAddress");
  const auto get_v2 = function_of<GetV2>(driver, "cuGetProcAddress_v2");
  std::set<std::string> names = {"", "cuNoSuchFunction", "cuMemAlloc_v2", "cudaMalloc"};
  std::ifstream file(table);
  for (std::string line; std::getline(file, line);)
    if (line.rfind("cu", 0) == 0) names.insert(line.substr(0, line.find(' ')));
  for (const std::string& name : names) {
    for (const int version : {0,     2000,  3020,  4000,  5000,  6000,  6050,  7000,  8000,  9000,  10000,
                              10020, 11000, 11020, 11030, 11040, 12000, 12030, 12050, 12090, 13000, 14000}) {
      for (const uint64_t flags : {0u, 1u, 2u, 3u}) {
        void* found = reinterpret_cast<void*>(0x5eed);
        int status = -5;
        const int result = get == nullptr ? -1 : get(name.c_str(), &found, version, flags);
        std::printf("%s %d %d: %d %s", name.c_str(), version, static_cast<int>(flags), result,
                    found == reinterpret_cast<void*>(0x5eed) ? "untouched" : look::describe(found).c_str());
        found = reinterpret_cast<void*>(0x5eed);
        const int result_v2 = get_v2 == nullptr ? -1 : get_v2(name.c_str(), &found, version, flags, &status);
        std::printf(" / %d %d %s\n", result_v2, status,
                    found == reinterpret_cast<void*>(0x5eed) ? "untouched" : look::describe(found).c_str());
      }
    }
  }
  void* found = nullptr;
  if (get != nullptr) std::printf("to nowhere: %d\n", get("cuInit", nullptr, 12000, 0));
  if (get != nullptr) std::printf("for nothing: %d\n", get(nullptr, &found, 12000, 0));
  if (get_v2 != nullptr) std::printf("without status: %d\n", get_v2("cuMemAlloc", &found, 12000, 0, nullptr));
  return 0;
}

int export_table() {
  void* driver = open_or_die("libcuda.so.1", RTLD_NOW);
  alarm(20);
  const auto get = function_of<int (*)(const void**, const void*)>(driver, "cuGetExportTable");
  const unsigned char id[16] = {0x6b, 0xd5, 0xfb, 0x6c};
  const void* table = id;
  const int result = get(&table, id);
  std::printf("result=%d\ntable=%s\n", result, table == nullptr ? "null" : "something");
  return 0;
}

// take PLUGIN FLAGS BYTES MOST: opens a plugin and lets it allocate.
int take(const char* plugin_file, int flags, size_t bytes, int most) {
  void* plugin = open_or_die(plugin_file, RTLD_NOW | flags);
  int result = -1;
  const int taken = function_of<int (*)(size_t, int, int*)>(plugin, "plugin_take")(bytes, most, &result);
  std::printf("taken=%d\nresult=%d\nREADY\n", taken, result);
  std::fflush(stdout);
  std::string line;
  std::getline(std::cin, line);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string scenario = argc > 1 ? argv[1] : "";
  if (scenario == "lookups" && argc == 3) return lookups(argv[2]);
  if (scenario == "proc" && argc == 3) return proc(argv[2]);
  if (scenario == "export-table") return export_table();
  if (scenario == "take" && argc == 5) return take(argv[2], RTLD_LOCAL, std::stoull(argv[3]), std::stoi(argv[4]));
  if (scenario == "take-deep" && argc == 5)
    return take(argv[2], RTLD_LOCAL | RTLD_DEEPBIND, std::stoull(argv[3]), std::stoi(argv[4]));
  return 2;
}
