// deepbind_program PLUGIN: knows nothing of CUDA, opens a plugin that does, with RTLD_DEEPBIND.
#include <dlfcn.h>

#include <cstdio>

int main(int, char** argv) {
  void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (plugin == nullptr) {
    std::printf("error=%s\n", dlerror());
    return 1;
  }
  const auto take = reinterpret_cast<int (*)(unsigned long long, int, int*)>(dlsym(plugin, "take_until_refused"));
  if (take == nullptr) {  // not that plugin: only tell whether it brought the driver along
    std::printf("driver=%s\n", dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) == nullptr ? "absent" : "present");
    return 0;
  }
  int taken = 0;
  const int result = take(100ull << 20, 100, &taken);
  std::printf("result=%d\ntaken=%d\n", result, taken);
  std::printf("READY\n");
  std::fflush(stdout);
  std::getchar();
}
