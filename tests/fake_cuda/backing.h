// Where the bytes of "device memory" live: a sparse memory file of this process, mapped at 2 MiB boundaries, so that
// copies move real bytes, other processes can map what is shared with them, and untouched pages cost nothing. Knows
// addresses and files only; what memory is charged for is decided elsewhere. Called under the driver's lock.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace fake {

// A piece of a memory file.
struct Extent {
  int fd = -1;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

class Backing {
 public:
  // A fresh, zeroed piece of this process's memory file; fd is -1 on failure.
  Extent create(uint64_t bytes);
  // The same in a file of its own, which can be handed to another process.
  static Extent create_shareable(uint64_t bytes);
  static void close_shareable(const Extent& extent);
  // Opens a piece that another process (or this one) described with pid, fd and offset.
  static Extent open_of(pid_t pid, const Extent& theirs);

  // Maps the piece at a 2 MiB boundary; below 4 GiB if `low`, for the 32-bit addresses of the oldest API. 0 on failure.
  static uint64_t map(const Extent& extent, bool low);
  // Maps it over an address range from reserve().
  static bool map_at(uint64_t address, const Extent& extent);
  // Address space without memory; `wanted` (if not 0) is only a hint. 0 on failure.
  static uint64_t reserve(uint64_t bytes, uint64_t alignment, uint64_t wanted);
  // Back to address space without memory.
  static void unmap_to_reserved(uint64_t address, uint64_t bytes);
  static void release(uint64_t address, uint64_t bytes);
  // Gives the pages of mapped memory back to the host.
  static void discard(uint64_t address, uint64_t bytes);

 private:
  bool file_is_ours() const;

  int fd_ = -1;
  ino_t inode_ = 0;
  uint64_t end_ = 0;
};

}  // namespace fake
