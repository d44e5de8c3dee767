// A program linked with one CUDA runtime that opens a library linked with another: runtime_client PLUGIN. Both allocate
// until refused and look at their errors; prints "name=value" lines, READY, and waits. Knows nothing of gpucap.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "tests/e2e/runtime_user.h"

namespace {

void print(const char* who, const char* what, unsigned long long value) {
  std::printf("%s_%s=%llu\n", who, what, value);
}

void use(const char* who, const RuntimeUser& user, const char* other_name, const RuntimeUser& other) {
  constexpr size_t kPiece = size_t{512} << 20;
  size_t free_bytes = 0, total_bytes = 0;
  print(who, "version", static_cast<unsigned>(user.version()));
  print(who, "info", static_cast<unsigned>(user.memory(&free_bytes, &total_bytes)));
  print(who, "total", total_bytes);
  print(who, "properties_total", user.total_of_properties());
  std::vector<void*> pieces;
  void* piece = nullptr;
  int result = 0;
  while (pieces.size() < 100 && (result = user.allocate(&piece, kPiece)) == 0) pieces.push_back(piece);
  print(who, "taken", pieces.size());
  print(who, "result", static_cast<unsigned>(result));
  print(who, "peek", static_cast<unsigned>(user.peek_error()));
  std::printf("%s_peek_while_%s_failed=%d\n", other_name, who, other.peek_error());
  print(who, "last_error", static_cast<unsigned>(user.last_error()));
  print(who, "last_error_again", static_cast<unsigned>(user.last_error()));
  int failed_frees = 0;
  for (void* pointer : pieces) failed_frees += user.release(pointer) == 0 ? 0 : 1;
  print(who, "failed_frees", static_cast<unsigned>(failed_frees));
  print(who, "async", static_cast<unsigned>(user.allocate_async(&piece, 1 << 20)));
  print(who, "async_free", static_cast<unsigned>(user.release_async(piece)));
  print(who, "bad_free", static_cast<unsigned>(user.release(reinterpret_cast<void*>(0x1234))));
  print(who, "bad_free_error", static_cast<unsigned>(user.last_error()));
}

}  // namespace

int main(int argc, char** argv) {
  void* plugin = argc < 2 ? nullptr : dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  void* found = plugin == nullptr ? nullptr : dlsym(plugin, "plugin_user");
  if (found == nullptr) return 3;
  void (*get_user)(RuntimeUser*) = nullptr;
  std::memcpy(&get_user, &found, sizeof(found));
  RuntimeUser guest{};
  get_user(&guest);
  const RuntimeUser host = user_here();
  use("host", host, "guest", guest);
  use("guest", guest, "host", host);
  std::printf("READY\n");
  std::fflush(stdout);
  std::string line;
  std::getline(std::cin, line);
  return 0;
}
