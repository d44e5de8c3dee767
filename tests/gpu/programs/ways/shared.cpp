// Memory that another process uses too: exported as a file descriptor or by the older inter-process handles, and held
// by a child of ours under a cap of its own. It is the exporter's; the importer must be charged with nothing.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "tests/gpu/programs/report.h"
#include "way.h"

extern char** environ;

namespace ways {
namespace {

constexpr int kGivenFd = 100;  // the exported handle, in the importer

// The importer while it lives: it holds what it imported until its stdin ends.
struct Importer {
  pid_t pid = 0;
  int to = -1;
} importer;

// Starts ourselves as an importer and waits until it has mapped what it was given.
CUresult start_importer(const char* mode, const std::string& what, int fd) {
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) return CUDA_ERROR_OPERATING_SYSTEM;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], 0);
  posix_spawn_file_actions_adddup2(&actions, from[1], 1);
  if (fd >= 0) posix_spawn_file_actions_adddup2(&actions, fd, kGivenFd);
  std::string self = world().self_path, mode_text = mode, what_text = what;
  char* arguments[] = {self.data(), mode_text.data(), what_text.data(), nullptr};
  const int failed = posix_spawn(&importer.pid, self.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(to[0]);
  close(from[1]);
  importer.to = to[1];
  char answer[32] = {};
  const ssize_t got = failed != 0 ? -1 : read(from[0], answer, sizeof(answer) - 1);
  close(from[0]);
  if (got <= 0) return CUDA_ERROR_OPERATING_SYSTEM;
  report::fact("other_pid", static_cast<unsigned long long>(importer.pid));
  return static_cast<CUresult>(std::atoi(answer));
}

// Handles travel as arguments of the importer.
template <typename Handle>
std::string to_text(const Handle& handle) {
  std::string text;
  for (const auto byte : handle.reserved) {
    char two[3];
    std::snprintf(two, sizeof(two), "%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    text += two;
  }
  return text;
}

template <typename Handle>
bool from_text(const std::string& text, Handle* handle) {
  constexpr size_t kBytes = sizeof(handle->reserved);
  if (text.size() != 2 * kBytes) return false;
  for (size_t i = 0; i < kBytes; ++i)
    handle->reserved[i] = static_cast<std::remove_reference_t<decltype(handle->reserved[0])>>(
        std::strtoul(text.substr(2 * i, 2).c_str(), nullptr, 16));
  return true;
}

CUmemAllocationProp exportable() {
  CUmemAllocationProp prop;
  std::memset(&prop, 0, sizeof(prop));
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return prop;
}

CUresult export_by_fd() {
  const CUmemAllocationProp prop = exportable();
  CUmemGenericAllocationHandle handle = 0;
  int fd = -1;
  CUresult result = cuMemCreate(&handle, kGib, &prop, 0);
  if (result == CUDA_SUCCESS)
    result = cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (result == CUDA_SUCCESS) result = start_importer("--import-fd", "", fd);
  if (fd >= 0) close(fd);
  return result;
}

CUresult export_by_ipc() {
  CUdeviceptr memory = 0;
  CUipcMemHandle handle;
  CUresult result = cuMemAlloc_v2(&memory, kGib);
  if (result == CUDA_SUCCESS) result = cuIpcGetMemHandle(&handle, memory);
  return result != CUDA_SUCCESS ? result : start_importer("--import-ipc", to_text(handle), -1);
}

CUmemoryPool the_pool = nullptr;

CUresult export_pool() {
  CUmemPoolProps props;
  std::memset(&props, 0, sizeof(props));
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  int fd = -1;
  CUdeviceptr memory = 0;
  CUmemPoolPtrExportData pointer;
  CUresult result = cuMemPoolCreate(&the_pool, &props);
  if (result == CUDA_SUCCESS)
    result = cuMemPoolExportToShareableHandle(&fd, the_pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (result == CUDA_SUCCESS) result = cuMemAllocFromPoolAsync(&memory, kGib, the_pool, nullptr);
  if (result == CUDA_SUCCESS) result = synchronize();
  if (result == CUDA_SUCCESS) result = cuMemPoolExportPointer(&pointer, memory);
  if (result == CUDA_SUCCESS) result = start_importer("--import-pool", to_text(pointer), fd);
  if (fd >= 0) close(fd);
  return result;
}

CUresult import_fd() {
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  CUresult result = cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(uintptr_t{kGivenFd}),
                                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  if (result == CUDA_SUCCESS) result = cuMemAddressReserve(&address, kGib, 0, 0, 0);
  if (result == CUDA_SUCCESS) result = cuMemMap(address, kGib, 0, handle, 0);
  return result;
}

CUresult import_ipc(const std::string& text) {
  CUipcMemHandle handle;
  CUdeviceptr address = 0;
  if (!from_text(text, &handle)) return CUDA_ERROR_INVALID_VALUE;
  return call_by_name("cuIpcOpenMemHandle_v2", &address, handle, unsigned{CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS});
}

CUresult import_pool(const std::string& text) {
  CUmemPoolPtrExportData pointer;
  CUmemoryPool pool = nullptr;
  CUdeviceptr address = 0;
  if (!from_text(text, &pointer)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = cuMemPoolImportFromShareableHandle(&pool, reinterpret_cast<void*>(uintptr_t{kGivenFd}),
                                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  return result != CUDA_SUCCESS ? result : cuMemPoolImportPointer(&address, pool, &pointer);
}

CUresult import_as(const std::string& mode, const std::string& what) {
  if (mode == "--import-fd") return import_fd();
  return mode == "--import-ipc" ? import_ipc(what) : import_pool(what);
}

Way shared(const std::string& name, std::function<CUresult()> begin, std::function<CUresult(Value*)> take,
           std::function<CUresult(Value)> give_back) {
  Way way;
  way.name = name;
  way.begin = std::move(begin);
  way.take = std::move(take);
  way.give_back = std::move(give_back);
  return way;
}

}  // namespace

int import_and_hold(int argc, char** argv) {
  if (argc < 3) return 2;
  CUcontext context = nullptr;
  CUresult result = cuInit(0);
  if (result == CUDA_SUCCESS) result = cuDevicePrimaryCtxRetain(&context, 0);
  if (result == CUDA_SUCCESS) result = cuCtxSetCurrent(context);
  if (result == CUDA_SUCCESS) result = import_as(argv[1], argv[2]);
  if (result == CUDA_SUCCESS) result = cuCtxSynchronize();
  std::printf("%d\n", result);
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}

void add_shared_ways(Ways& ways) {
  ways.push_back(shared(
      "cuMemCreate while another process imported a GiB", export_by_fd,
      [](Value* out) {
        const CUmemAllocationProp prop = exportable();
        return cuMemCreate(out, kBlock, &prop, 0);
      },
      [](Value handle) { return cuMemRelease(handle); }));
  ways.push_back(shared(
      "cuMemAlloc_v2 while another process opened a GiB", export_by_ipc,
      [](Value* out) { return cuMemAlloc_v2(out, kBlock); }, free_linear));
  ways.push_back(shared(
      "cuMemAllocFromPoolAsync while another process imported the pool", export_pool,
      [](Value* out) { return cuMemAllocFromPoolAsync(out, kBlock, the_pool, nullptr); },
      [](Value value) { return cuMemFreeAsync(value, nullptr); }));
  ways.back().optional = true;
}

}  // namespace ways
