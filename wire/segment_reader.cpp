// The tools' view of a segment file: see segment_reader.h. Opens, checks once, then copies by pread.
#include "wire/segment_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace gpucap::wire {
namespace {

// Bounds on what a reader allocates, whatever a file says. The API number of an event has 16 bits.
constexpr uint64_t kMostApiNames = UINT64_C(65536);
constexpr uint64_t kMostCounters = UINT64_C(1)
                                   << 22;  // some hundred entry points, 17 lanes, 64 devices: a tenth of that
constexpr uint64_t kMostLanes = uint64_t{GPUCAP_WIRE_MAX_DEVICES} * GPUCAP_WIRE_MAX_LANES;
constexpr uint64_t kLargestStride = 65536;
constexpr uint64_t kLargestRing = uint64_t{1} << 24;

bool read_exactly(int fd, void* to, uint64_t bytes, uint64_t offset) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = pread(fd, at, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      if (got == 0) errno = ENODATA;
      return false;
    }
    at += got;
    bytes -= static_cast<uint64_t>(got);
    offset += static_cast<uint64_t>(got);
  }
  return true;
}

// Reads `count` structs that lie `stride` apart; the known part of each.
template <class T>
bool read_structs(int fd, const gpucap_region& region, uint64_t count, std::vector<T>* out) {
  out->resize(count);
  if (region.stride == sizeof(T)) return read_exactly(fd, out->data(), count * sizeof(T), region.offset);
  for (uint64_t i = 0; i < count; ++i) {
    if (!read_exactly(fd, &(*out)[i], sizeof(T), region.offset + i * region.stride)) return false;
  }
  return true;
}

bool fits(const gpucap_region& region, uint64_t known_bytes, uint64_t most, uint64_t file_bytes) {
  if (region.offset % 64 != 0 || region.offset < sizeof(gpucap_header) || region.offset > file_bytes) return false;
  if (region.stride < known_bytes || region.stride % 8 != 0 || region.stride > kLargestStride) return false;
  return region.count <= most && region.count <= (file_bytes - region.offset) / region.stride;
}

template <size_t N>
std::string clean_field(const char (&field)[N]) {
  return clean_text(std::string_view(field, N));
}

// Around the end of all numbers, if a file says so.
void add_up(int64_t* sum, int64_t more) {
  *sum = static_cast<int64_t>(static_cast<uint64_t>(*sum) + static_cast<uint64_t>(more));
}

std::vector<std::string> split_command(const char* text, size_t capacity) {
  size_t length = capacity;
  while (length > 0 && text[length - 1] == '\0') --length;
  std::vector<std::string> arguments;
  for (size_t at = 0; at < length;) {
    const size_t end = std::find(text + at, text + length, '\0') - text;
    arguments.push_back(clean_text(std::string_view(text + at, end - at)));
    at = end + 1;
  }
  return arguments;
}

}  // namespace

const char* to_text(ReadError error) {
  switch (error) {
    case ReadError::kNone:
      return "no error";
    case ReadError::kCannotOpen:
      return "cannot be opened";
    case ReadError::kNotAFile:
      return "not a regular file";
    case ReadError::kTooShort:
      return "shorter than it should be";
    case ReadError::kNotASegment:
      return "not a gpucap segment";
    case ReadError::kOtherVersion:
      return "written by another major version";
    case ReadError::kNotReady:
      return "not ready yet";
    case ReadError::kBadHeader:
      return "impossible header";
    case ReadError::kBadRegion:
      return "impossible region table";
    case ReadError::kMissingRegion:
      return "a region is missing";
    case ReadError::kCannotRead:
      return "cannot be read";
  }
  return "unknown error";
}

uint64_t DeviceSnapshot::used_bytes() const {
  // Unsigned, so that hostile figures wrap instead of being undefined.
  uint64_t sum = 0;
  for (const int64_t part : {gauges.linear_bytes, gauges.array_bytes, gauges.pool_bytes, gauges.vmm_bytes,
                             gauges.managed_bytes, gauges.driver_bytes}) {
    sum += static_cast<uint64_t>(part);
  }
  return static_cast<int64_t>(sum) < 0 ? 0 : sum;
}

SegmentReader::~SegmentReader() { reset(); }
SegmentReader::SegmentReader(SegmentReader&& other) noexcept { *this = std::move(other); }
SegmentReader& SegmentReader::operator=(SegmentReader&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(owner_uid_, other.owner_uid_);
  std::swap(regions_, other.regions_);
  std::swap(ring_capacity_, other.ring_capacity_);
  std::swap(api_names_, other.api_names_);
  return *this;
}

void SegmentReader::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  api_names_.clear();
}

ReadError SegmentReader::open(int directory_fd, const char* name, int* error_number) {
  reset();
  *error_number = 0;
  const ReadError error = open_and_check(directory_fd, name, error_number);
  if (error != ReadError::kNone) reset();
  return error;
}

ReadError SegmentReader::open_and_check(int directory_fd, const char* name, int* error_number) {
  // O_NONBLOCK: a named pipe of that name must not make us wait.
  fd_ = openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (fd_ < 0) {
    *error_number = errno;
    return errno == ELOOP || errno == ENXIO ? ReadError::kNotAFile : ReadError::kCannotOpen;
  }
  struct stat status;
  if (fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) return ReadError::kNotAFile;
  owner_uid_ = status.st_uid;
  const auto file_bytes = static_cast<uint64_t>(status.st_size);
  gpucap_header header = {};
  if (file_bytes < sizeof(header)) return ReadError::kTooShort;
  if (!read_exactly(fd_, &header, sizeof(header), 0)) {
    *error_number = errno;
    return ReadError::kCannotRead;
  }
  if (header.magic != GPUCAP_WIRE_MAGIC) return ReadError::kNotASegment;
  if (header.major != GPUCAP_WIRE_MAJOR) return ReadError::kOtherVersion;
  if (header.state == GPUCAP_STATE_BUILDING) return ReadError::kNotReady;
  if (header.header_bytes < sizeof(header) || header.state > GPUCAP_STATE_ENDED ||
      header.region_count > GPUCAP_WIRE_MAX_REGIONS) {
    return ReadError::kBadHeader;
  }
  if (header.file_bytes > file_bytes) return ReadError::kTooShort;
  if (const ReadError error = check_regions(header, file_bytes); error != ReadError::kNone) return error;

  std::vector<gpucap_api_name> names;
  if (!read_structs(fd_, regions_.api_names, regions_.api_names.count, &names)) {
    *error_number = errno;
    return ReadError::kCannotRead;
  }
  for (const gpucap_api_name& api : names) api_names_.push_back(clean_field(api.name));
  return ReadError::kNone;
}

ReadError SegmentReader::check_regions(const gpucap_header& header, uint64_t file_bytes) {
  regions_ = {};
  const struct {
    uint32_t type;
    uint64_t known_bytes;
    uint64_t most;
    gpucap_region* to;
  } known[] = {
      {GPUCAP_REGION_DEVICES, sizeof(gpucap_device), GPUCAP_WIRE_MAX_DEVICES, &regions_.devices},
      {GPUCAP_REGION_API_NAMES, sizeof(gpucap_api_name), kMostApiNames, &regions_.api_names},
      {GPUCAP_REGION_API_COUNTERS, sizeof(gpucap_api_counter), kMostCounters, &regions_.api_counters},
      {GPUCAP_REGION_RING_HEADER, sizeof(gpucap_ring_header), 1, &regions_.ring_header},
      {GPUCAP_REGION_EVENTS, sizeof(gpucap_event), kLargestRing, &regions_.events},
      {GPUCAP_REGION_CONTROL, sizeof(gpucap_control), 1, &regions_.control},
      {GPUCAP_REGION_LANES, sizeof(gpucap_lane), kMostLanes, &regions_.lanes},
  };
  for (uint32_t i = 0; i < header.region_count; ++i) {
    const gpucap_region& region = header.regions[i];
    for (const auto& entry : known) {
      if (entry.type != region.type) continue;
      if (entry.to->type != GPUCAP_REGION_NONE) return ReadError::kBadRegion;  // twice
      if (!fits(region, entry.known_bytes, entry.most, file_bytes)) return ReadError::kBadRegion;
      *entry.to = region;
    }
  }
  for (const auto& entry : known) {
    if (entry.to->type == GPUCAP_REGION_NONE) return ReadError::kMissingRegion;
  }
  const uint64_t capacity = regions_.events.count;
  gpucap_ring_header ring = {};
  if (regions_.ring_header.count != 1 || regions_.api_names.count == 0) return ReadError::kBadRegion;
  if (capacity == 0 || (capacity & (capacity - 1)) != 0) return ReadError::kBadRegion;
  const uint64_t devices = regions_.devices.count;
  if (regions_.control.count != 1 || (devices != 0 && regions_.lanes.count % devices != 0))
    return ReadError::kBadRegion;
  if (devices == 0 && regions_.lanes.count != 0) return ReadError::kBadRegion;
  if (regions_.api_counters.count != regions_.lanes.count * regions_.api_names.count) return ReadError::kBadRegion;
  if (!read_exactly(fd_, &ring, sizeof(ring), regions_.ring_header.offset)) return ReadError::kCannotRead;
  if (ring.capacity != capacity) return ReadError::kBadRegion;
  ring_capacity_ = capacity;
  return ReadError::kNone;
}

ReadError SegmentReader::snapshot(SegmentSnapshot* out, int* error_number, Counters which) const {
  gpucap_header header = {};
  gpucap_ring_header ring = {};
  std::vector<gpucap_device> devices;
  std::vector<gpucap_api_counter> counters;
  std::vector<gpucap_lane> lanes;
  if (!read_exactly(fd_, &header, sizeof(header), 0) ||
      !read_structs(fd_, regions_.devices, regions_.devices.count, &devices) ||
      !read_structs(fd_, regions_.lanes, regions_.lanes.count, &lanes) ||
      !read_structs(fd_, regions_.api_counters, which == Counters::kRead ? regions_.api_counters.count : 0,
                    &counters) ||
      !read_exactly(fd_, &ring, sizeof(ring), regions_.ring_header.offset)) {
    *error_number = errno;
    return ReadError::kCannotRead;
  }
  SegmentSnapshot result;
  result.pid = header.pid;
  result.uid = header.uid;
  result.state = header.state;
  result.created_realtime_ns = header.created_realtime_ns;
  result.created_monotonic_ns = header.created_monotonic_ns;
  result.updated_monotonic_ns = header.updated_monotonic_ns;
  result.ended_realtime_ns = header.ended_realtime_ns;
  result.run_id = clean_field(header.run_id);
  result.version = clean_field(header.version);
  result.command = split_command(header.command, sizeof(header.command));
  result.group = clean_field(header.group);
  result.on_limit = header.on_limit;
  result.wait_at_most_ns = header.wait_at_most_ns;
  result.parent_pid = header.parent_pid;
  result.ring_capacity = ring_capacity_;
  result.events_claimed = ring.head;
  result.events_dropped = ring.dropped;
  auto lane = lanes.begin();
  auto counter = counters.begin();
  result.devices.reserve(devices.size());
  for (const gpucap_device& gauges : devices) {
    DeviceSnapshot device;
    device.gauges = gauges;
    device.name = clean_field(gauges.name);
    if (!counters.empty()) device.counters.resize(api_names_.size());
    for (size_t i = 0; i < lanes.size() / devices.size(); ++i, ++lane) {
      add_up(&device.live_count, lane->live_count);
      add_up(&device.reserved_bytes, lane->reserved_bytes);
      for (ApiCounters& api : device.counters) {
        api.calls += counter->calls;
        api.refused += counter->refused;
        api.bytes += counter->bytes;
        ++counter;
      }
    }
    result.devices.push_back(std::move(device));
  }
  *out = std::move(result);
  return ReadError::kNone;
}

LivenessAnswer SegmentReader::liveness() const {
  gpucap_header header = {};
  if (!read_exactly(fd_, &header, sizeof(header), 0)) return {};
  return examine_liveness(fd_, header);
}

FileRingReader SegmentReader::ring(uint64_t position, uint64_t dropped_before) const {
  const FileRingSource source(fd_, regions_.ring_header.offset, regions_.events.offset, regions_.events.stride);
  return FileRingReader(source, ring_capacity_, position, dropped_before);
}

bool FileRingSource::counters(uint64_t* head, uint64_t* dropped) const {
  gpucap_ring_header header = {};
  if (!read_exactly(fd_, &header, sizeof(header), header_offset_)) return false;
  *head = header.head;
  *dropped = header.dropped;
  return true;
}

bool FileRingSource::sequences(uint64_t first_slot, uint32_t count, uint64_t* out) const {
  std::vector<char> bytes(count * stride_);
  if (!read_exactly(fd_, bytes.data(), bytes.size(), events_offset_ + first_slot * stride_)) return false;
  for (uint32_t i = 0; i < count; ++i) {
    std::memcpy(&out[i], bytes.data() + i * stride_ + offsetof(gpucap_event, sequence), sizeof(out[i]));
  }
  // The kernel copies with ordinary loads: what is read next must not be read before this.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return true;
}

bool FileRingSource::events(uint64_t first_slot, uint32_t count, gpucap_event* out) const {
  std::vector<char> bytes(count * stride_);
  if (!read_exactly(fd_, bytes.data(), bytes.size(), events_offset_ + first_slot * stride_)) return false;
  for (uint32_t i = 0; i < count; ++i) std::memcpy(&out[i], bytes.data() + i * stride_, sizeof(out[i]));
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return true;
}

}  // namespace gpucap::wire
