// What the tools change from outside: the limit of a running process (in its segment's control region) and of a group
// (in the group's file). Only the file's owner and root can, which the file's mode and a check of our own say. Never
// used inside the process that owns the segment: closing the file would drop that process's lock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/group_layout.h"
#include "wire/layout.h"

namespace gpucap::wire {

enum class ControlError {
  kNone,
  kCannotOpen,  // see error_number
  kNotOwner,    // neither the file's owner nor root
  kUnreadable,  // not a segment or a group file, or damaged
  kNoSuchDevice,
};
const char* to_text(ControlError error);

// Asks the process behind the segment `name` in the directory to take over a limit; it does so at its next request.
// `ordinal` -1: on every device. Bytes, or GPUCAP_WIRE_NO_LIMIT.
ControlError request_limit(int directory_fd, const char* name, int ordinal, uint64_t limit_bytes, int* error_number);

struct GroupMember {
  uint32_t pid = 0;  // as the member itself sees it
  uint32_t uid = 0;
  uint64_t pid_namespace = 0;
  int viewer_pid = 0;  // as the caller's PID namespace numbers it, 0 if that cannot be known
  struct Share {
    int64_t held_bytes = 0;
    uint64_t wait_ticket = 0;
    uint64_t wait_bytes = 0;
  };
  std::vector<Share> shares;  // by the group's own device number
};

struct GroupSnapshot {
  std::string name;
  uint64_t created_realtime_ns = 0;
  struct Device {
    uint8_t uuid[16] = {};
    uint64_t limit_bytes = GPUCAP_WIRE_NO_LIMIT;
    int64_t used_bytes = 0;  // by the living members
  };
  std::vector<Device> devices;
  std::vector<GroupMember> members;  // living ones
};

// A group's file, opened by the tools.
class GroupFile {
 public:
  GroupFile() = default;
  ~GroupFile();
  GroupFile(const GroupFile&) = delete;
  GroupFile& operator=(const GroupFile&) = delete;

  // `group` is the group's name, not the file's.
  ControlError open(int directory_fd, const std::string& group, bool writable, int* error_number);
  // Everything in it is taken as hostile and cleaned.
  ControlError snapshot(GroupSnapshot* out, int* error_number) const;
  // `device` is the group's own number of it, -1: every one that any member has used. Acts at the members' next
  // request.
  ControlError set_limit(int device, uint64_t limit_bytes, int* error_number);
  [[nodiscard]] uint32_t owner_uid() const { return owner_uid_; }

 private:
  int fd_ = -1;
  uint32_t owner_uid_ = 0;
};

// The names of the groups whose files lie in the directory, sorted.
std::vector<std::string> group_names(int directory_fd);

}  // namespace gpucap::wire
