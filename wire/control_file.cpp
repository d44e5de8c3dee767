// Opening and storing: see control_file.h.
#include "wire/control_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "wire/files.h"

namespace gpucap::wire {
namespace {

bool may_change(const struct stat& status) {
  const uid_t caller = geteuid();
  return caller == 0 || caller == status.st_uid;
}

}  // namespace

ControlError open_own_file(int directory_fd, const char* name, bool writable, OpenedFile* file, int* error_number) {
  *error_number = 0;
  struct stat status = {};
  // O_NONBLOCK: a named pipe of that name must not make us wait.
  const int flags = (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  const int fd = openat(directory_fd, name, flags);
  if (fd < 0) {
    const int why = errno;
    if (why == ELOOP || why == ENXIO || why == EISDIR) return ControlError::kUnreadable;
    const bool others =
        (why == EACCES || why == EPERM) && stat_entry(directory_fd, name, &status) == 0 && !may_change(status);
    if (others && writable) return ControlError::kNotOwner;
    *error_number = why;
    return ControlError::kCannotOpen;
  }
  ControlError error = ControlError::kNone;
  if (stat_descriptor(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    error = ControlError::kUnreadable;
  } else if (writable && !may_change(status)) {
    error = ControlError::kNotOwner;
  } else if (writable && status.st_nlink > 1) {
    error = ControlError::kUnreadable;  // in a directory of somebody else's, root could be led to another file
  }
  if (error != ControlError::kNone) {
    close(fd);
    return error;
  }
  *file = {fd, static_cast<uint64_t>(status.st_size), status.st_uid};
  return ControlError::kNone;
}

bool read_whole(int fd, void* to, uint64_t bytes, uint64_t offset) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = pread(fd, at, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<uint64_t>(got);
    offset += static_cast<uint64_t>(got);
  }
  return true;
}

SharedWords::SharedWords(int fd, uint64_t bytes) : bytes_(bytes) {
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base != MAP_FAILED) base_ = static_cast<uint64_t*>(base);
}

SharedWords::~SharedWords() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

}  // namespace gpucap::wire
