// The files of guests: see kept_file.h.
#include "wire/kept_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/files.h"

namespace gpucap::wire {
namespace {

constexpr int kFirstKeptDescriptor = 200;

// Ours alone? A directory of ours that umask made narrower than 0700 is widened to it; one open to others is refused.
DirectoryError check_default_directory(int fd, int* error_number) {
  struct stat status;
  if (stat_descriptor(fd, &status) != 0) {
    *error_number = errno;
    return DirectoryError::kMissing;
  }
  if (status.st_uid != geteuid() || (status.st_mode & 0077) != 0) {
    *error_number = EPERM;
    return DirectoryError::kForeign;
  }
  if ((status.st_mode & 0777) != 0700) fchmod(fd, 0700);
  return DirectoryError::kNone;
}

}  // namespace

DirectoryError open_directory(const char* path, bool is_default, int* fd, int* error_number) {
  const bool made = mkdir(path, 0700) == 0;
  // A directory that the user names may well be reached through a link; the default one is in a place open to all.
  const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (is_default ? O_NOFOLLOW : 0);
  *fd = open(path, flags);
  if (*fd < 0 && errno == EACCES) {
    // A umask such as 0777 took our own rights. The name is ours: nobody else can replace it in a sticky directory.
    struct stat status;
    if (stat_entry(AT_FDCWD, path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
        (status.st_mode & 0077) == 0 && chmod(path, 0700) == 0) {
      *fd = open(path, flags);
    } else {
      errno = EACCES;
    }
  }
  if (*fd < 0) {
    *error_number = errno;
    // What stands there is a link or a file, under the default's name: not a directory of ours.
    const bool trap = is_default && (errno == ELOOP || errno == ENOTDIR);
    return trap ? DirectoryError::kForeign : DirectoryError::kMissing;
  }
  DirectoryError error = DirectoryError::kNone;
  if (is_default) {
    error = check_default_directory(*fd, error_number);
  } else if (made) {
    fchmod(*fd, 0700);
  }
  if (error != DirectoryError::kNone) close(*fd);
  return error;
}

int move_descriptor_high(int fd) {
  struct rlimit limit = {};
  int first = kFirstKeptDescriptor;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < static_cast<rlim_t>(first) + 8) {
    first = static_cast<int>(limit.rlim_cur / 2);
  }
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, first);
  if (high < 0) return fd;
  close(fd);
  return high;
}

int reserve_pages(int fd, uint64_t bytes) {
  // Past the file-size limit the kernel would send SIGXFSZ, which kills; so it is not asked.
  struct rlimit limit = {};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < bytes) return EFBIG;
  int error = EINTR;
  for (int attempt = 0; attempt < 100 && error == EINTR; ++attempt) {
    error = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  }
  return error;
}

bool KeptFile::is_ours(int fd) const {
  struct stat status;
  return fd >= 0 && stat_descriptor(fd, &status) == 0 && status.st_dev == device_id_ && status.st_ino == inode_;
}

bool KeptFile::keep(int fd, const char* directory, const char* name) {
  const size_t length = strlen(directory);
  const size_t name_length = strlen(name);
  struct stat status = {};
  if (length + 1 + name_length >= sizeof(path_) || stat_descriptor(fd, &status) != 0) return false;
  memcpy(path_, directory, length);
  path_[length] = '/';
  memcpy(path_ + length + 1, name, name_length + 1);
  fd_ = fd;
  device_id_ = status.st_dev;
  inode_ = status.st_ino;
  return true;
}

int KeptFile::ensure() {
  if (is_ours(fd_)) return fd_;
  // The program closed our descriptor, and the number may by now be a file of its own: leave that one alone.
  fd_ = open(path_, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd_ >= 0) fd_ = move_descriptor_high(fd_);
  if (fd_ >= 0 && !is_ours(fd_)) {
    close(fd_);
    fd_ = -1;
  }
  return fd_;
}

void KeptFile::close_if_ours() {
  if (is_ours(fd_)) close(fd_);
  fd_ = -1;
}

}  // namespace gpucap::wire
