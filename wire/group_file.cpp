// A group's file as the tools see it: see control.h. Reads by pread and trusts nothing; writes the limits alone.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "wire/control.h"
#include "wire/control_file.h"
#include "wire/files.h"
#include "wire/group_life.h"
#include "wire/segment_reader.h"

namespace gpucap::wire {
namespace {

// Bounds on what is read, whatever a file says.
constexpr uint32_t kMostSlots = 4096;
constexpr uint32_t kLargestSlot = 65536;

bool is_group_name(std::string_view name) {
  if (name.empty() || name.size() >= GPUCAP_GROUP_NAME_BYTES || name.front() == '.' || name.front() == '-') {
    return false;
  }
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' ||
           c == '-';
  });
}

ControlError read_header(int fd, gpucap_group_header* header) {
  struct stat status = {};
  if (stat_descriptor(fd, &status) != 0 || !read_whole(fd, header, sizeof(*header), 0)) {
    return ControlError::kUnreadable;
  }
  const auto bytes = static_cast<uint64_t>(status.st_size);
  const bool sound = header->magic == GPUCAP_GROUP_MAGIC && header->major == GPUCAP_GROUP_MAJOR &&
                     header->header_bytes >= sizeof(*header) && header->header_bytes % 8 == 0 &&
                     header->slot_count <= kMostSlots && header->slot_bytes >= sizeof(gpucap_group_slot) &&
                     header->slot_bytes <= kLargestSlot && header->slot_bytes % 8 == 0 &&
                     header->device_count <= GPUCAP_GROUP_DEVICES && header->file_bytes <= bytes &&
                     header->header_bytes + uint64_t{header->slot_count} * header->slot_bytes <= bytes;
  return sound ? ControlError::kNone : ControlError::kUnreadable;
}

// The member's process as it is numbered here: by whoever holds the lock, else by its own word in our own namespace.
int viewer_pid_of(int fd, uint32_t slot_number, const gpucap_group_slot& slot) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = GPUCAP_GROUP_SLOT_LOCK(int64_t{slot_number});
  lock.l_len = 1;
  if (fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK && lock.l_pid > 0) return lock.l_pid;
  const uint64_t here = own_pid_namespace();
  return here != 0 && slot.pid_namespace == here ? static_cast<int>(slot.pid) : 0;
}

}  // namespace

GroupFile::~GroupFile() {
  if (fd_ >= 0) close(fd_);
}

ControlError GroupFile::open(int directory_fd, const std::string& group, bool writable, int* error_number) {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  *error_number = ENOENT;
  if (!is_group_name(group)) return ControlError::kCannotOpen;
  OpenedFile file;
  ControlError error =
      open_own_file(directory_fd, (group + GPUCAP_GROUP_SUFFIX).c_str(), writable, &file, error_number);
  if (error != ControlError::kNone) return error;
  gpucap_group_header header = {};
  error = read_header(file.fd, &header);
  if (error != ControlError::kNone) {
    close(file.fd);
    return error;
  }
  fd_ = file.fd;
  owner_uid_ = file.owner_uid;
  return ControlError::kNone;
}

ControlError GroupFile::snapshot(GroupSnapshot* out, int* error_number) const {
  *error_number = 0;
  gpucap_group_header header = {};
  struct stat status = {};
  if (const ControlError error = read_header(fd_, &header); error != ControlError::kNone) return error;
  if (stat_descriptor(fd_, &status) != 0) return ControlError::kUnreadable;
  GroupSnapshot result;
  result.name = clean_text(std::string_view(header.name, sizeof(header.name)));
  result.created_realtime_ns = header.created_realtime_ns;
  result.devices.resize(header.device_count);
  for (uint32_t i = 0; i < header.device_count; ++i) {
    std::memcpy(result.devices[i].uuid, header.devices[i].uuid, sizeof(result.devices[i].uuid));
    result.devices[i].limit_bytes = header.devices[i].limit_bytes;
  }
  std::vector<uint64_t> used(header.device_count);  // unsigned, so that hostile figures wrap
  const uint32_t slots = std::min(header.slot_count, header.highest_slot);
  for (uint32_t number = 0; number < slots; ++number) {
    gpucap_group_slot slot = {};
    const uint64_t offset = header.header_bytes + uint64_t{number} * header.slot_bytes;
    if (!read_whole(fd_, &slot, sizeof(slot), offset)) return ControlError::kUnreadable;
    // A dying one counts too: the card still has its memory.
    if (slot.incarnation == 0 || life_of_slot(fd_, slot, number, status.st_ino) == GroupLife::kDead) continue;
    GroupMember member;
    member.viewer_pid = viewer_pid_of(fd_, number, slot);
    member.pid = slot.pid;
    member.uid = slot.uid;
    member.pid_namespace = slot.pid_namespace;
    for (uint32_t i = 0; i < header.device_count; ++i) {
      const gpucap_group_share& share = slot.shares[i];
      member.shares.push_back({share.held_bytes, share.wait_ticket, share.wait_bytes});
      used[i] += static_cast<uint64_t>(share.held_bytes);
    }
    result.members.push_back(std::move(member));
  }
  for (uint32_t i = 0; i < header.device_count; ++i) {
    result.devices[i].used_bytes = std::max(int64_t{0}, static_cast<int64_t>(used[i]));
  }
  *out = std::move(result);
  return ControlError::kNone;
}

ControlError GroupFile::set_limit(int device, uint64_t limit_bytes, int* error_number) {
  *error_number = 0;
  gpucap_group_header header = {};
  if (const ControlError error = read_header(fd_, &header); error != ControlError::kNone) return error;
  const bool every = device == -1;
  if (header.device_count == 0 || (!every && (device < 0 || static_cast<uint32_t>(device) >= header.device_count))) {
    return ControlError::kNoSuchDevice;
  }
  const SharedWords words(fd_, sizeof(header));
  if (!words.ready()) {
    *error_number = errno;
    return errno == EACCES ? ControlError::kNotOwner : ControlError::kCannotOpen;
  }
  for (uint32_t i = 0; i < header.device_count; ++i) {
    if (!every && i != static_cast<uint32_t>(device)) continue;
    const uint64_t at = offsetof(gpucap_group_header, devices) + i * sizeof(gpucap_group_device) +
                        offsetof(gpucap_group_device, limit_bytes);
    words.at(at).store(limit_bytes, std::memory_order_release);
  }
  return ControlError::kNone;
}

std::vector<std::string> group_names(int directory_fd) {
  constexpr std::string_view kSuffix = GPUCAP_GROUP_SUFFIX;
  std::vector<std::string> names;
  DirectoryWalk walk(directory_fd);
  walk.rewind();
  while (const char* entry = walk.next()) {
    const std::string_view name = entry;
    if (name.size() <= kSuffix.size() || name.substr(name.size() - kSuffix.size()) != kSuffix) continue;
    const std::string_view group = name.substr(0, name.size() - kSuffix.size());
    if (is_group_name(group)) names.emplace_back(group);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace gpucap::wire
