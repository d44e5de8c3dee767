// Life and death of a group's members: see group_life.h.
#include "wire/group_life.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/files.h"
#include "wire/liveness.h"

namespace gpucap::wire {
namespace {

bool is_locked_by_others(int fd, int64_t offset) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = offset;
  lock.l_len = 1;
  return fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

// Under the gate: no member lives in the file, which still has its name.
bool is_deserted(int directory_fd, const char* file_name, int fd, const struct stat& status) {
  gpucap_group_header header = {};
  struct stat named = {};
  if (pread(fd, &header, sizeof(header), 0) != static_cast<ssize_t>(sizeof(header)) ||
      !is_group_header(header, status.st_size))
    return false;
  if (stat_entry(directory_fd, file_name, &named) != 0 || named.st_ino != status.st_ino) return false;
  for (uint32_t i = 0; i < header.highest_slot; ++i) {
    gpucap_group_slot slot = {};
    const uint64_t offset = header.header_bytes + uint64_t{i} * header.slot_bytes;
    if (pread(fd, &slot, sizeof(slot), static_cast<off_t>(offset)) != static_cast<ssize_t>(sizeof(slot))) return false;
    if (life_of_slot(fd, slot, i, status.st_ino) != GroupLife::kDead) return false;
  }
  return true;
}

}  // namespace

bool lock_group_byte(int fd, int64_t offset, short type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = offset;
  lock.l_len = 1;
  return fcntl(fd, F_SETLK, &lock) == 0;
}

GroupLife life_of_slot(int fd, const gpucap_group_slot& slot, uint32_t number, uint64_t inode) {
  const ErrnoGuard guard;
  if (is_locked_by_others(fd, GPUCAP_GROUP_SLOT_LOCK(int64_t{number}))) return GroupLife::kAlive;
  const uint32_t pid = slot.pid;
  const uint64_t expected_ticks = slot.start_ticks;
  if (pid == 0 || expected_ticks == 0 || slot.pid_namespace == 0 || slot.pid_namespace != own_pid_namespace())
    return GroupLife::kDead;
  const auto exists = [&] { return process_has_threads(pid, expected_ticks); };
  if (!exists()) return GroupLife::kDead;
  switch (mapping_of(pid, inode)) {
    case Mapping::kYes:      // the program closed our descriptor: it will take the lock again
    case Mapping::kUnknown:  // somebody else's process: may be so
      return GroupLife::kAlive;
    case Mapping::kNo:  // another program by now, through exec
      return GroupLife::kDead;
    case Mapping::kNothing:
      break;
  }
  return exists() ? GroupLife::kDying : GroupLife::kDead;
}

bool sweep_group(int directory_fd, const char* file_name) {
  const ErrnoGuard guard;
  struct stat status = {};
  if (stat_entry(directory_fd, file_name, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  if (process_maps_inode(static_cast<uint32_t>(getpid()), status.st_ino)) return false;  // we are a member
  const int fd = openat(directory_fd, file_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  const bool removed = stat_descriptor(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                       lock_group_byte(fd, GPUCAP_GROUP_GATE_LOCK, F_WRLCK) &&
                       is_deserted(directory_fd, file_name, fd, status) && unlinkat(directory_fd, file_name, 0) == 0;
  close(fd);  // and with it the gate
  return removed;
}

bool is_group_file_name(const char* file_name) {
  constexpr size_t kSuffix = sizeof(GPUCAP_GROUP_SUFFIX) - 1;
  const size_t length = strlen(file_name);
  return length > kSuffix && file_name[0] != '.' && strcmp(file_name + length - kSuffix, GPUCAP_GROUP_SUFFIX) == 0;
}

bool format_group_name(const char* group, char* text, size_t capacity) {
  const size_t length = strlen(group);
  if (length == 0 || length >= GPUCAP_GROUP_NAME_BYTES || length + sizeof(GPUCAP_GROUP_SUFFIX) > capacity) return false;
  memcpy(text, group, length);
  memcpy(text + length, GPUCAP_GROUP_SUFFIX, sizeof(GPUCAP_GROUP_SUFFIX));
  return true;
}

bool is_group_header(const gpucap_group_header& header, int64_t file_bytes) {
  constexpr uint64_t kFileBytes =
      sizeof(gpucap_group_header) + uint64_t{GPUCAP_GROUP_SLOTS} * sizeof(gpucap_group_slot);
  return header.magic == GPUCAP_GROUP_MAGIC && header.major == GPUCAP_GROUP_MAJOR &&
         header.header_bytes == sizeof(gpucap_group_header) && header.slot_count == GPUCAP_GROUP_SLOTS &&
         header.slot_bytes == sizeof(gpucap_group_slot) && header.file_bytes == kFileBytes &&
         file_bytes >= static_cast<int64_t>(kFileBytes) && header.device_count <= GPUCAP_GROUP_DEVICES &&
         header.highest_slot <= GPUCAP_GROUP_SLOTS;
}

}  // namespace gpucap::wire
