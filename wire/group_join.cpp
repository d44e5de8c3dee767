// How a process joins a group and leaves it, and who of the others lives: see group_member.h. Whoever takes a slot,
// adds a device or removes the file holds the gate, a record lock that the kernel takes away from the dead.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "wire/files.h"
#include "wire/group_member.h"
#include "wire/steps.h"

namespace gpucap::wire {
namespace {

constexpr uint64_t kFileBytes = sizeof(gpucap_group_header) + uint64_t{GPUCAP_GROUP_SLOTS} * sizeof(gpucap_group_slot);
constexpr uint64_t kGateAtMost_ns = 5'000'000'000;
constexpr unsigned kRenameNoReplace = 1;  // RENAME_NOREPLACE; its header is newer than our floor

// Makes the file complete under a temporary name, which the sweep of segments knows, and gives it its own if nobody
// was faster. Returns an errno value; EEXIST is success of somebody else.
int make_file(int directory_fd, const char* file_name, const char* group) {
  SegmentName temporary = {static_cast<uint32_t>(getpid()), realtime_now_ns(), true};
  char text[SegmentName::kMaxBytes];
  format_name(temporary, text);
  const int fd = openat(directory_fd, text, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (fd < 0) return errno;
  struct stat directory = {};
  // Who may write into the directory may be a member.
  mode_t mode = S_IRUSR | S_IWUSR;
  if (stat_descriptor(directory_fd, &directory) == 0) mode |= directory.st_mode & 0066;
  fchmod(fd, mode);
  gpucap_group_header header = {};
  header.magic = GPUCAP_GROUP_MAGIC;
  header.major = GPUCAP_GROUP_MAJOR;
  header.minor = GPUCAP_GROUP_MINOR;
  header.header_bytes = sizeof(header);
  header.file_bytes = kFileBytes;
  header.slot_count = GPUCAP_GROUP_SLOTS;
  header.slot_bytes = sizeof(gpucap_group_slot);
  header.created_realtime_ns = temporary.created_realtime_ns;
  header.next_ticket = 1;
  memcpy(header.name, group, strnlen(group, sizeof(header.name) - 1));
  int error = reserve_pages(fd, kFileBytes);
  if (error == 0 && pwrite(fd, &header, sizeof(header), 0) != static_cast<ssize_t>(sizeof(header))) error = EIO;
  GPUCAP_STEP("join:file-made");
  if (error == 0 && syscall(SYS_renameat2, directory_fd, text, directory_fd, file_name, kRenameNoReplace) != 0) {
    error = errno;
    if (error == EINVAL || error == ENOSYS)
      error = linkat(directory_fd, text, directory_fd, file_name, 0) == 0 ? 0 : errno;
  }
  unlinkat(directory_fd, text, 0);  // of a file that got its name by rename there is nothing to remove
  close(fd);
  return error;
}

}  // namespace

bool GroupMember::pass_gate(uint64_t at_most_ns) {
  const uint64_t until = monotonic_now_ns() + at_most_ns;
  while (!lock_group_byte(file_.fd(), GPUCAP_GROUP_GATE_LOCK, F_WRLCK)) {
    if (monotonic_now_ns() >= until) return false;
    const timespec time = {0, 100'000};
    nanosleep(&time, nullptr);
  }
  GPUCAP_STEP("gate:passed");
  return true;
}

void GroupMember::leave_gate() { lock_group_byte(file_.fd(), GPUCAP_GROUP_GATE_LOCK, F_UNLCK); }

GroupError GroupMember::open_or_make(int directory_fd, const char* file_name, const char* name, int* fd,
                                     int* error_number) {
  for (int attempt = 0; attempt < 16; ++attempt) {
    *fd = openat(directory_fd, file_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (*fd >= 0) {
      struct stat status = {};
      gpucap_group_header header = {};
      if (stat_descriptor(*fd, &status) == 0 && S_ISREG(status.st_mode) &&
          pread(*fd, &header, sizeof(header), 0) == static_cast<ssize_t>(sizeof(header)) &&
          is_group_header(header, status.st_size) && strncmp(header.name, name, GPUCAP_GROUP_NAME_BYTES) == 0) {
        *fd = move_descriptor_high(*fd);
        return GroupError::kNone;
      }
      close(*fd);
      *error_number = EINVAL;
      return GroupError::kNotAGroup;
    }
    *error_number = errno;
    if (errno != ENOENT) return errno == ELOOP ? GroupError::kNotAGroup : GroupError::kCannotOpen;
    const int error = make_file(directory_fd, file_name, name);
    if (error == 0 || error == EEXIST) continue;
    *error_number = error;
    return error == ENOSPC || error == EDQUOT || error == EFBIG ? GroupError::kNoSpace : GroupError::kCannotOpen;
  }
  return GroupError::kCannotOpen;
}

GroupError GroupMember::join(const char* directory, bool directory_is_default, const char* name, int* error_number) {
  const ErrnoGuard guard;
  *error_number = ENAMETOOLONG;
  char file_name[GPUCAP_GROUP_NAME_BYTES + sizeof(GPUCAP_GROUP_SUFFIX)];
  if (strlen(directory) >= KeptFile::kMaxDirectory || !format_group_name(name, file_name, sizeof(file_name)))
    return GroupError::kCannotOpen;
  int directory_fd = -1;
  switch (open_directory(directory, directory_is_default, &directory_fd, error_number)) {
    case DirectoryError::kNone:
      break;
    case DirectoryError::kMissing:
      return GroupError::kNoDirectory;
    case DirectoryError::kForeign:
      return GroupError::kForeignDirectory;
  }
  GroupError error = GroupError::kCannotOpen;
  for (int attempt = 0; attempt < 16; ++attempt) {
    int fd = -1;
    error = open_or_make(directory_fd, file_name, name, &fd, error_number);
    if (error != GroupError::kNone) break;
    void* base = mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
      *error_number = errno;
      close(fd);
      error = GroupError::kCannotMap;
      break;
    }
    header_ = static_cast<gpucap_group_header*>(base);
    file_.keep(fd, directory, file_name);
    owner_pid_ = getpid();
    *error_number = EAGAIN;
    error = GroupError::kBusy;
    if (pass_gate(kGateAtMost_ns)) {
      struct stat status = {};
      const bool current = stat_entry(directory_fd, file_name, &status) == 0 && status.st_ino == file_.inode();
      error = current ? take_slot() : GroupError::kBusy;
      leave_gate();
      if (error == GroupError::kNone) break;
      if (!current) {  // the last member took it away before we were in
        munmap(base, kFileBytes);
        header_ = nullptr;
        file_.close_if_ours();
        continue;
      }
    }
    munmap(base, kFileBytes);
    header_ = nullptr;
    file_.close_if_ours();
    break;
  }
  close(directory_fd);
  return error;
}

GroupError GroupMember::take_slot() {
  bool alone = true;
  uint32_t chosen = GPUCAP_GROUP_SLOTS;
  own_ = GPUCAP_GROUP_SLOTS;
  for (uint32_t i = 0; i < GPUCAP_GROUP_SLOTS; ++i) {
    const bool dead = i >= header_->highest_slot || life_of(i) == GroupLife::kDead;
    if (!dead) alone = false;
    if (dead && chosen == GPUCAP_GROUP_SLOTS) chosen = i;
    if (i >= header_->highest_slot && chosen != GPUCAP_GROUP_SLOTS) break;
  }
  if (chosen == GPUCAP_GROUP_SLOTS) return GroupError::kFull;
  // Before the lock: who has not seen yet that the one before is dead would take its shares for those of a living one.
  gpucap_group_slot& own = *slot(chosen);
  for (gpucap_group_share& share : own.shares) clear(share);
  GPUCAP_STEP("join:slot-cleared");
  if (!lock_group_byte(file_.fd(), GPUCAP_GROUP_SLOT_LOCK(int64_t{chosen}), F_WRLCK)) return GroupError::kCannotOpen;
  GPUCAP_STEP("join:slot-locked");
  if (alone) {  // nobody stands by the old limits any more
    std::atomic_ref<uint32_t>(header_->device_count).store(0);
    for (uint32_t i = 0; i < header_->highest_slot; ++i) memset(slot(i)->shares, 0, sizeof(slot(i)->shares));
  }
  own.pid = static_cast<uint32_t>(owner_pid_);
  own.uid = geteuid();
  own.pid_namespace = own_pid_namespace();
  char state = 0;
  if (!read_start_ticks(own.pid, &own.start_ticks, &state)) own.start_ticks = 0;
  own.joined_realtime_ns = realtime_now_ns();
  GPUCAP_STEP("join:before-incarnation");
  begin_incarnation(own);
  if (chosen >= header_->highest_slot) std::atomic_ref<uint32_t>(header_->highest_slot).store(chosen + 1);
  own_ = chosen;
  GPUCAP_STEP("join:joined");
  return GroupError::kNone;
}

GroupError GroupMember::add_device(const uint8_t (&uuid)[16], uint64_t limit_bytes, int* number,
                                   uint64_t* standing_bytes) {
  const ErrnoGuard guard;
  if (!pass_gate(kGateAtMost_ns)) return GroupError::kBusy;
  const uint32_t count = header_->device_count;
  uint32_t found = 0;
  while (found < count && memcmp(header_->devices[found].uuid, uuid, sizeof(uuid)) != 0) ++found;
  GroupError error = GroupError::kNone;
  if (found == GPUCAP_GROUP_DEVICES) {
    error = GroupError::kFull;
  } else {
    gpucap_group_device& device = header_->devices[found];
    if (found == count) {
      memcpy(device.uuid, uuid, sizeof(uuid));
      device.limit_bytes = limit_bytes;
      device.context_bytes = 0;
      GPUCAP_STEP("device:before-count");
      std::atomic_ref<uint32_t>(header_->device_count).store(count + 1);
    } else if (device.limit_bytes == GPUCAP_WIRE_NO_LIMIT && limit_bytes != GPUCAP_WIRE_NO_LIMIT) {
      std::atomic_ref<uint64_t>(device.limit_bytes).store(limit_bytes);
    }
    *number = static_cast<int>(found);
    *standing_bytes = std::atomic_ref<uint64_t>(device.limit_bytes).load();
  }
  leave_gate();
  return error;
}

GroupLife GroupMember::life_of(uint32_t number) const {
  return life_of_slot(file_.fd(), *slot(number), number, file_.inode());
}

void GroupMember::keep_alive() {
  const ErrnoGuard guard;
  if (!joined() || getpid() != owner_pid_) return;
  if (keeping_.exchange(true, std::memory_order_acquire)) return;
  if (const int fd = file_.ensure(); fd >= 0) lock_group_byte(fd, GPUCAP_GROUP_SLOT_LOCK(int64_t{own_}), F_WRLCK);
  keeping_.store(false, std::memory_order_release);
}

void GroupMember::leave() {
  const ErrnoGuard guard;
  if (!joined() || getpid() != owner_pid_ || file_.ensure() < 0) return;
  // What we still hold comes free when the kernel takes the process down, and must be counted until then.
  for (const gpucap_group_share& share : slot(own_)->shares) {
    if (std::atomic_ref<int64_t>(const_cast<int64_t&>(share.held_bytes)).load() != 0) return;
  }
  if (!pass_gate(0)) return;  // somebody is joining
  bool alone = true;
  for (uint32_t i = 0; i < header_->highest_slot && alone; ++i) alone = i == own_ || life_of(i) == GroupLife::kDead;
  GPUCAP_STEP("leave:before-unlink");
  if (alone) unlink(file_.path());
  leave_gate();
}

const char* to_text(GroupError error) {
  switch (error) {
    case GroupError::kNone:
      return "no error";
    case GroupError::kNoDirectory:
      return "the directory cannot be made or opened";
    case GroupError::kForeignDirectory:
      return "the directory belongs to someone else or is open to others";
    case GroupError::kCannotOpen:
      return "its file cannot be opened";
    case GroupError::kNotAGroup:
      return "its file is damaged, or of another version";
    case GroupError::kNoSpace:
      return "no space for its file";
    case GroupError::kCannotMap:
      return "its file cannot be mapped";
    case GroupError::kBusy:
      return "another process holds its gate; is a member stopped?";
    case GroupError::kFull:
      return "it has no room for another member or device";
  }
  return "unknown error";
}

}  // namespace gpucap::wire
