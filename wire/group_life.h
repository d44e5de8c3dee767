// Whether the member behind a group's slot lives, and removing the file of a group that nobody lives in. Called by the
// members themselves, the sweep and the tools; no malloc. Closing a descriptor of the file drops the locks of the
// calling process: a member never calls these with another descriptor than the one that it keeps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/group_layout.h"

namespace gpucap::wire {

enum class GroupLife : uint8_t {
  kAlive,
  kDying,  // killed, and the kernel is taking it down: the card still has its memory
  kDead,
};

// `slot` is a copy or the mapped one; `inode` that of the group's file.
GroupLife life_of_slot(int fd, const gpucap_group_slot& slot, uint32_t number, uint64_t inode);

// The lock on one byte of a group's file: of this process, and without waiting.
bool lock_group_byte(int fd, int64_t offset, short type);

// Removes the file if it is a group's and no member lives; true if it did. Never waits.
bool sweep_group(int directory_fd, const char* file_name);

// Whether a name in the directory is a group's file; and the file's name of a group, false if it does not fit.
bool is_group_file_name(const char* file_name);
bool format_group_name(const char* group, char* text, size_t capacity);

// Whether this is the start of a group's file as this code knows it.
bool is_group_header(const gpucap_group_header& header, int64_t file_bytes);

}  // namespace gpucap::wire
