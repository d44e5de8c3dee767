// Changing limits from outside: see control.h. Used by the tools only. What is validated is what is written to: both
// happen on one descriptor, and the words are stored through a mapping, so that nobody sees half of one.
#include "wire/control.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <string>

#include "wire/control_file.h"

namespace gpucap::wire {
namespace {

struct Target {
  uint64_t device_count = 0;
  uint64_t control_offset = 0;  // 0: none
};

ControlError find_control(int fd, uint64_t file_bytes, Target* target) {
  gpucap_header header = {};
  if (file_bytes < sizeof(header) || !read_whole(fd, &header, sizeof(header), 0)) return ControlError::kUnreadable;
  if (header.magic != GPUCAP_WIRE_MAGIC || header.major != GPUCAP_WIRE_MAJOR || header.state == GPUCAP_STATE_BUILDING ||
      header.state > GPUCAP_STATE_ENDED || header.header_bytes < sizeof(header) ||
      header.region_count > GPUCAP_WIRE_MAX_REGIONS) {
    return ControlError::kUnreadable;
  }
  for (uint32_t i = 0; i < header.region_count; ++i) {
    const gpucap_region& region = header.regions[i];
    if (region.type == GPUCAP_REGION_DEVICES) target->device_count = region.count;
    if (region.type != GPUCAP_REGION_CONTROL) continue;
    const bool fits = region.count == 1 && region.stride >= sizeof(gpucap_control) && region.offset % 64 == 0 &&
                      region.offset >= sizeof(header) && file_bytes >= sizeof(gpucap_control) &&
                      region.offset <= file_bytes - sizeof(gpucap_control);
    if (!fits || target->control_offset != 0) return ControlError::kUnreadable;
    target->control_offset = region.offset;
  }
  if (target->device_count > GPUCAP_WIRE_MAX_DEVICES) return ControlError::kUnreadable;
  return target->control_offset == 0 ? ControlError::kUnreadable : ControlError::kNone;
}

}  // namespace

const char* to_text(ControlError error) {
  switch (error) {
    case ControlError::kNone:
      return "no error";
    case ControlError::kCannotOpen:
      return "cannot be opened";
    case ControlError::kNotOwner:
      return "belongs to somebody else";
    case ControlError::kUnreadable:
      return "is damaged, or not a file of gpucap's";
    case ControlError::kNoSuchDevice:
      return "has no such device";
  }
  return "unknown error";
}

ControlError request_limit(int directory_fd, const char* name, int ordinal, uint64_t limit_bytes, int* error_number) {
  OpenedFile file;
  ControlError error = open_own_file(directory_fd, name, true, &file, error_number);
  if (error != ControlError::kNone) return error;
  Target target;
  error = find_control(file.fd, file.bytes, &target);
  const bool every = ordinal == -1;
  if (error == ControlError::kNone && !every &&
      (ordinal < 0 || static_cast<uint64_t>(ordinal) >= target.device_count)) {
    error = ControlError::kNoSuchDevice;
  }
  if (error == ControlError::kNone) {
    SharedWords words(file.fd, file.bytes);
    if (words.ready()) {
      for (uint64_t i = 0; i < target.device_count; ++i) {
        if (!every && i != static_cast<uint64_t>(ordinal)) continue;
        const uint64_t at = target.control_offset + offsetof(gpucap_control, limit_bytes) + i * sizeof(uint64_t);
        words.at(at).store(limit_bytes, std::memory_order_relaxed);
      }
      // Release: who sees the new number sees the limits.
      words.at(target.control_offset + offsetof(gpucap_control, sequence)).fetch_add(1, std::memory_order_release);
    } else {
      *error_number = errno;
      error = ControlError::kCannotOpen;
    }
  }
  close(file.fd);
  return error;
}

}  // namespace gpucap::wire
