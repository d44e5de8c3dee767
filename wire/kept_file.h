// What the makers of shared files have in common: the directory, pages that are really there, and a descriptor that
// stays ours although we are a guest in a program that may close it. Called by the segment writer and by a group's
// member, in the shim: no malloc, no exceptions, errno is the caller's to keep.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpucap::wire {

enum class DirectoryError { kNone, kMissing, kForeign };

// Opens it, and makes it with mode 0700 if it is missing; nothing above it is made. The default one must belong to us
// and be closed to others: a trap of somebody else's is refused. *error_number is errno.
DirectoryError open_directory(const char* path, bool is_default, int* fd, int* error_number);

// Takes every page now, so that a full file system can never fault a store later. Returns an errno value.
int reserve_pages(int fd, uint64_t bytes);

// The program may expect the next descriptor to be 3. Closing the low one drops any record lock: lock afterwards.
int move_descriptor_high(int fd);

// A descriptor that is opened again by its path if the program closed it.
class KeptFile {
 public:
  static constexpr size_t kMaxDirectory = 448;  // what is left of a path for the name is enough for every file of ours

  // Takes over the descriptor; false if the path is too long to keep.
  bool keep(int fd, const char* directory, const char* name);
  // The descriptor, opened again where need be; -1 if the file cannot be had any more. Locks are lost when it was
  // closed, and also when the program closed another descriptor of the same file: take them again.
  int ensure();
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] const char* path() const { return path_; }
  [[nodiscard]] uint64_t inode() const { return inode_; }
  // Closes it, unless the number is by now a file of the program's own.
  void close_if_ours();

 private:
  [[nodiscard]] bool is_ours(int fd) const;

  int fd_ = -1;
  uint64_t device_id_ = 0;  // st_dev and st_ino of the file, to recognise our descriptor
  uint64_t inode_ = 0;
  char path_[512] = {};
};

}  // namespace gpucap::wire
