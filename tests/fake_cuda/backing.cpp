// See backing.h.
#include "tests/fake_cuda/backing.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "tests/fake_cuda/sizes.h"

namespace fake {
namespace {

void* pointer(uint64_t address) { return reinterpret_cast<void*>(address); }
uint64_t number(void* address) { return reinterpret_cast<uint64_t>(address); }

// Address space of `bytes` at a multiple of `alignment`, or 0.
uint64_t reserve_aligned(uint64_t bytes, uint64_t alignment, uint64_t wanted, int extra_flags) {
  const uint64_t slack = bytes + alignment;
  void* const base =
      ::mmap(pointer(wanted), slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | extra_flags, -1, 0);
  if (base == MAP_FAILED) return 0;
  const uint64_t start = round_up(number(base), alignment);
  if (start > number(base)) ::munmap(base, start - number(base));
  const uint64_t tail = number(base) + slack - (start + bytes);
  if (tail > 0) ::munmap(pointer(start + bytes), tail);
  return start;
}

// The same below 4 GiB: for the driver's oldest functions, whose pointers have 32 bits.
uint64_t reserve_low(uint64_t bytes, uint64_t alignment) {
#ifdef MAP_32BIT
  return reserve_aligned(bytes, alignment, 0, MAP_32BIT);
#else
  constexpr uint64_t kFirst = uint64_t{1} << 28, kStep = uint64_t{1} << 28, kEnd = uint64_t{1} << 32;
  for (uint64_t wanted = kFirst; wanted + bytes <= kEnd; wanted += kStep) {
    const uint64_t start = reserve_aligned(bytes, alignment, wanted, 0);
    if (start != 0 && start + bytes <= kEnd) return start;
    if (start != 0) ::munmap(pointer(start), bytes);
  }
  return 0;
#endif
}

}  // namespace

bool Backing::file_is_ours() const {
  struct stat status {};
  return fd_ >= 0 && ::fstat(fd_, &status) == 0 && status.st_ino == inode_;
}

Extent Backing::create(uint64_t bytes) {
  // The host program may have closed our descriptor, and its number may be someone else's file by now.
  if (!file_is_ours()) {
    struct stat status {};
    fd_ = ::memfd_create("fake-cuda-memory", MFD_CLOEXEC);
    if (fd_ < 0 || ::fstat(fd_, &status) != 0) return {};
    inode_ = status.st_ino;
    end_ = 0;
  }
  const uint64_t size = round_up(bytes, 4096);
  if (::ftruncate(fd_, static_cast<off_t>(end_ + size)) != 0) return {};
  const Extent extent{fd_, end_, size};
  end_ += size;  // offsets are never used again: the file is sparse, and freed pages are given back
  return extent;
}

Extent Backing::create_shareable(uint64_t bytes) {
  const int fd = ::memfd_create("fake-cuda-shared", MFD_CLOEXEC);
  if (fd < 0) return {};
  if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    ::close(fd);
    return {};
  }
  return {fd, 0, bytes};
}

void Backing::close_shareable(const Extent& extent) {
  if (extent.fd >= 0) ::close(extent.fd);
}

Extent Backing::open_of(pid_t pid, const Extent& theirs) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/fd/%d", static_cast<int>(pid), theirs.fd);
  return {::open(path, O_RDWR | O_CLOEXEC), theirs.offset, theirs.bytes};
}

uint64_t Backing::map(const Extent& extent, bool low) {
  const uint64_t address =
      low ? reserve_low(extent.bytes, kBlockBytes) : reserve_aligned(extent.bytes, kBlockBytes, 0, 0);
  if (address == 0) return 0;
  if (map_at(address, extent)) return address;
  release(address, extent.bytes);
  return 0;
}

bool Backing::map_at(uint64_t address, const Extent& extent) {
  return ::mmap(pointer(address), extent.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
                extent.fd, static_cast<off_t>(extent.offset)) != MAP_FAILED;
}

uint64_t Backing::reserve(uint64_t bytes, uint64_t alignment, uint64_t wanted) {
  return reserve_aligned(bytes, alignment < kBlockBytes ? kBlockBytes : alignment, wanted, 0);
}

void Backing::unmap_to_reserved(uint64_t address, uint64_t bytes) {
  ::mmap(pointer(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void Backing::release(uint64_t address, uint64_t bytes) { ::munmap(pointer(address), bytes); }

void Backing::discard(uint64_t address, uint64_t bytes) { ::madvise(pointer(address), bytes, MADV_REMOVE); }

}  // namespace fake
