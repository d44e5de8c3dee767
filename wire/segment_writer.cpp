// Builds a segment's file and keeps its lock: see segment_writer.h. The shim calls it inside someone else's program: no
// malloc, no exceptions, nothing newer than glibc 2.17, errno, umask and low descriptor numbers left as they were.
#include "wire/segment_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "wire/files.h"
#include "wire/kept_file.h"
#include "wire/sweep.h"

namespace gpucap::wire {
namespace {

constexpr uint32_t kExaminedAtStart = 64;  // a program's start should not wait for others' leavings
constexpr uint64_t kRegionAlignment = 64;
constexpr uint32_t kMostApis = UINT16_MAX + 1u;  // events hold the number in 16 bits
constexpr uint32_t kLargestRing = uint32_t{1} << 24;

// Through void*: the offsets are multiples of 64 in a page-aligned mapping, which the compiler cannot know.
template <class T>
T* part(void* base, uint64_t offset) {
  return static_cast<T*>(static_cast<void*>(static_cast<char*>(base) + offset));
}

enum Part { kDevices, kControl, kRingHeader, kLanes, kCounters, kEvents, kNames, kParts };

struct Plan {
  gpucap_region regions[kParts];
  uint64_t file_bytes;
};

Plan plan_regions(const SegmentSpec& spec) {
  Plan plan = {};
  const uint64_t lanes = uint64_t{spec.device_count} * spec.lane_count;
  // What the writer touches at every call lies together.
  plan.regions[kDevices] = {GPUCAP_REGION_DEVICES, sizeof(gpucap_device), 0, spec.device_count};
  plan.regions[kControl] = {GPUCAP_REGION_CONTROL, sizeof(gpucap_control), 0, 1};
  plan.regions[kRingHeader] = {GPUCAP_REGION_RING_HEADER, sizeof(gpucap_ring_header), 0, 1};
  plan.regions[kLanes] = {GPUCAP_REGION_LANES, sizeof(gpucap_lane), 0, lanes};
  plan.regions[kCounters] = {GPUCAP_REGION_API_COUNTERS, sizeof(gpucap_api_counter), 0, lanes * spec.api_count};
  plan.regions[kEvents] = {GPUCAP_REGION_EVENTS, sizeof(gpucap_event), 0, spec.ring_capacity};
  plan.regions[kNames] = {GPUCAP_REGION_API_NAMES, sizeof(gpucap_api_name), 0, spec.api_count};
  uint64_t at = sizeof(gpucap_header);
  for (gpucap_region& region : plan.regions) {
    region.offset = at;
    at += (region.count * region.stride + kRegionAlignment - 1) / kRegionAlignment * kRegionAlignment;
  }
  plan.file_bytes = at;
  return plan;
}

bool valid(const SegmentSpec& spec) {
  const uint32_t ring = spec.ring_capacity;
  return spec.directory != nullptr && spec.directory[0] != '\0' && spec.device_count <= GPUCAP_WIRE_MAX_DEVICES &&
         spec.api_names != nullptr && spec.api_count >= 1 && spec.api_count <= kMostApis && spec.lane_count >= 1 &&
         spec.lane_count <= GPUCAP_WIRE_MAX_LANES && ring >= 1 && ring <= kLargestRing && (ring & (ring - 1)) == 0;
}

void copy_text(char* to, size_t capacity, const char* from) {
  if (from == nullptr) return;
  const size_t length = strnlen(from, capacity - 1);  // the rest is zero already
  memcpy(to, from, length);
}

void read_command(char* to, size_t capacity) {
  const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  size_t filled = 0;
  while (filled + 1 < capacity) {
    const ssize_t got = read(fd, to + filled, capacity - 1 - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    filled += static_cast<size_t>(got);
  }
  close(fd);
}

void fill(void* base, const SegmentSpec& spec, const Plan& plan, const SegmentName& name) {
  auto* header = static_cast<gpucap_header*>(base);
  header->major = GPUCAP_WIRE_MAJOR;
  header->minor = GPUCAP_WIRE_MINOR;
  header->header_bytes = sizeof(gpucap_header);
  header->file_bytes = plan.file_bytes;
  header->pid = name.pid;
  header->uid = geteuid();
  header->region_count = sizeof(plan.regions) / sizeof(plan.regions[0]);
  header->pid_namespace = own_pid_namespace();
  char state = 0;
  if (!read_start_ticks(name.pid, &header->start_ticks, &state)) header->start_ticks = 0;
  header->created_realtime_ns = name.created_realtime_ns;
  // The same moment on both clocks: readers turn the events' times into wall time with the pair.
  header->created_monotonic_ns = monotonic_now_ns() - (realtime_now_ns() - name.created_realtime_ns);
  header->updated_monotonic_ns = header->created_monotonic_ns;
  copy_text(header->run_id, sizeof(header->run_id), spec.run_id);
  copy_text(header->version, sizeof(header->version), spec.version);
  copy_text(header->group, sizeof(header->group), spec.group);
  header->on_limit = spec.on_limit;
  header->wait_at_most_ns = spec.wait_at_most_ns;
  header->parent_pid = static_cast<uint32_t>(getppid());
  read_command(header->command, sizeof(header->command));
  memcpy(header->regions, plan.regions, sizeof(plan.regions));

  auto* devices = part<gpucap_device>(base, plan.regions[kDevices].offset);
  for (uint32_t ordinal = 0; ordinal < spec.device_count; ++ordinal) {
    devices[ordinal].ordinal = ordinal;
    devices[ordinal].limit_bytes = GPUCAP_WIRE_NO_LIMIT;
    devices[ordinal].policy_limit_bytes = GPUCAP_WIRE_NO_LIMIT;
    devices[ordinal].group_limit_bytes = GPUCAP_WIRE_NO_LIMIT;
    if (spec.describe != nullptr) spec.describe(spec.describe_argument, &devices[ordinal]);
  }
  auto* control = part<gpucap_control>(base, plan.regions[kControl].offset);
  for (uint32_t ordinal = 0; ordinal < GPUCAP_WIRE_MAX_DEVICES; ++ordinal) {
    control->limit_bytes[ordinal] =
        ordinal < spec.device_count ? devices[ordinal].limit_bytes : uint64_t{GPUCAP_WIRE_NO_LIMIT};
  }
  auto* names = part<gpucap_api_name>(base, plan.regions[kNames].offset);
  for (uint32_t api = 0; api < spec.api_count; ++api) {
    copy_text(names[api].name, sizeof(names[api].name), spec.api_names[api]);
  }
  part<gpucap_ring_header>(base, plan.regions[kRingHeader].offset)->capacity = spec.ring_capacity;
  header->state = GPUCAP_STATE_LIVE;
  header->magic = GPUCAP_WIRE_MAGIC;  // last: a file that was cut short in the making has none
}

// Everything between the open temporary and its publication. On failure the caller removes the file.
SegmentError build(int directory_fd, const SegmentSpec& spec, const Plan& plan, const SegmentName& name, int* fd,
                   void** base, int* error_number) {
  fchmod(*fd, S_IRUSR | S_IWUSR);  // whatever umask left
  *error_number = reserve_pages(*fd, plan.file_bytes);
  if (*error_number != 0) return SegmentError::kNoSpace;
  *fd = move_descriptor_high(*fd);
  void* mapping = mmap(nullptr, plan.file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
  if (mapping == MAP_FAILED) {
    *error_number = errno;
    return SegmentError::kCannotMap;
  }
  fill(mapping, spec, plan, name);
  // A file system without locks (some network ones) is no reason to fail: readers then judge by /proc.
  take_life_lock(*fd);
  SegmentName temporary = name;
  temporary.temporary = true;
  char from[SegmentName::kMaxBytes];
  char to[SegmentName::kMaxBytes];
  format_name(temporary, from);
  format_name(name, to);
  if (renameat(directory_fd, from, directory_fd, to) != 0) {
    *error_number = errno;
    munmap(mapping, plan.file_bytes);
    return SegmentError::kCannotCreate;
  }
  *base = mapping;
  return SegmentError::kNone;
}

int open_temporary(int directory_fd, SegmentName* name, char (&text)[SegmentName::kMaxBytes]) {
  for (int attempt = 0; attempt < 16; ++attempt) {
    *name = {static_cast<uint32_t>(getpid()), realtime_now_ns(), true};
    format_name(*name, text);
    const int fd = openat(directory_fd, text, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

}  // namespace

SegmentError SegmentWriter::create(const SegmentSpec& spec, int* error_number) {
  const ErrnoGuard guard;
  int ignored = 0;
  if (error_number == nullptr) error_number = &ignored;
  *error_number = EINVAL;
  if (attached() || !valid(spec)) return SegmentError::kBadSpec;
  if (strlen(spec.directory) >= KeptFile::kMaxDirectory) {
    *error_number = ENAMETOOLONG;
    return SegmentError::kNoDirectory;
  }
  int directory_fd = -1;
  switch (open_directory(spec.directory, spec.directory_is_default, &directory_fd, error_number)) {
    case DirectoryError::kNone:
      break;
    case DirectoryError::kMissing:
      return SegmentError::kNoDirectory;
    case DirectoryError::kForeign:
      return SegmentError::kForeignDirectory;
  }
  SweepRules rules;
  rules.examine_at_most = kExaminedAtStart;
  sweep(directory_fd, rules);

  const Plan plan = plan_regions(spec);
  SegmentName name;
  char text[SegmentName::kMaxBytes];
  int fd = open_temporary(directory_fd, &name, text);
  SegmentError error = SegmentError::kNone;
  if (fd < 0) {
    *error_number = errno;
    error = errno == ENOSPC || errno == EDQUOT ? SegmentError::kNoSpace : SegmentError::kCannotCreate;
  } else {
    name.temporary = false;
    void* base = nullptr;
    error = build(directory_fd, spec, plan, name, &fd, &base, error_number);
    if (error != SegmentError::kNone) {
      unlinkat(directory_fd, text, 0);
      close(fd);
    } else {
      *error_number = 0;
      base_ = base;
      bytes_ = plan.file_bytes;
      devices_ = part<gpucap_device>(base, plan.regions[kDevices].offset);
      counters_ = part<gpucap_api_counter>(base, plan.regions[kCounters].offset);
      ring_ = part<gpucap_ring_header>(base, plan.regions[kRingHeader].offset);
      events_ = part<gpucap_event>(base, plan.regions[kEvents].offset);
      control_ = part<gpucap_control>(base, plan.regions[kControl].offset);
      lanes_ = part<gpucap_lane>(base, plan.regions[kLanes].offset);
      api_count_ = spec.api_count;
      lane_count_ = spec.lane_count;
      owner_pid_ = static_cast<int>(name.pid);
      format_name(name, text);
      file_.keep(fd, spec.directory, text);
    }
  }
  close(directory_fd);
  return error;
}

void SegmentWriter::keep_alive() {
  const ErrnoGuard guard;
  if (!attached() || getpid() != owner_pid_) return;
  std::atomic_ref<bool> keeping(keeping_);
  if (keeping.exchange(true, std::memory_order_acquire)) return;
  if (const int fd = file_.ensure(); fd >= 0) take_life_lock(fd);
  keeping.store(false, std::memory_order_release);  // pairs with the exchange above
}

void SegmentWriter::mark_ended() {
  const ErrnoGuard guard;
  if (!attached() || getpid() != owner_pid_) return;
  std::atomic_ref<uint64_t>(header()->ended_realtime_ns).store(realtime_now_ns(), std::memory_order_relaxed);
  // Release: a reader that sees ENDED sees the time.
  std::atomic_ref<uint32_t>(header()->state).store(GPUCAP_STATE_ENDED, std::memory_order_release);
}

void SegmentWriter::leave_in_child() {
  const ErrnoGuard guard;
  if (!attached() || getpid() == owner_pid_) return;
  file_.close_if_ours();
  munmap(base_, bytes_);
  base_ = nullptr;
  bytes_ = 0;
  devices_ = nullptr;
  counters_ = nullptr;
  ring_ = nullptr;
  events_ = nullptr;
  control_ = nullptr;
  lanes_ = nullptr;
  api_count_ = 0;
  lane_count_ = 0;
  file_ = {};
  owner_pid_ = 0;
  keeping_ = false;
}

const char* to_text(SegmentError error) {
  switch (error) {
    case SegmentError::kNone:
      return "no error";
    case SegmentError::kBadSpec:
      return "bad specification";
    case SegmentError::kNoDirectory:
      return "the directory cannot be made or opened";
    case SegmentError::kForeignDirectory:
      return "the directory belongs to someone else or is open to others";
    case SegmentError::kCannotCreate:
      return "the file cannot be created";
    case SegmentError::kNoSpace:
      return "no space for the file";
    case SegmentError::kCannotMap:
      return "the file cannot be mapped";
  }
  return "unknown error";
}

}  // namespace gpucap::wire
