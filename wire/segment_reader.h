// Reads segments for the tools. Everything in a file is taken as hostile: checked once against the file's size, read by
// pread (a file cut short later is a short read, never SIGBUS), copied, and cleaned of what a terminal must not see.
// Never writes. Not for use inside the process that owns the segment: closing the file would drop that process's lock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire/layout.h"
#include "wire/liveness.h"
#include "wire/ring_reader.h"

namespace gpucap::wire {

enum class ReadError {
  kNone,
  kCannotOpen,    // see error_number
  kNotAFile,      // a link, a directory, a device, ...
  kTooShort,      // shorter than a header, or than it says it is
  kNotASegment,   // another magic
  kOtherVersion,  // a major that this reader does not know
  kNotReady,      // still being built
  kBadHeader,     // sizes or counts that cannot be
  kBadRegion,     // a region outside the file, misaligned, too small or too large
  kMissingRegion,
  kCannotRead,  // see error_number
};
const char* to_text(ReadError error);

struct ApiCounters {
  uint64_t calls = 0;
  uint64_t refused = 0;
  uint64_t bytes = 0;
};

struct DeviceSnapshot {
  gpucap_device gauges = {};  // the name is in `name`
  std::string name;
  std::vector<ApiCounters> counters;  // by API number
  int64_t live_count = 0;             // of all lanes, as is the next
  int64_t reserved_bytes = 0;
  // linear + array + pool + vmm + managed + driver, never below zero.
  [[nodiscard]] uint64_t used_bytes() const;
};

struct SegmentSnapshot {
  uint32_t pid = 0;  // as the process itself sees it
  uint32_t uid = 0;
  uint32_t state = 0;
  uint64_t created_realtime_ns = 0;
  uint64_t created_monotonic_ns = 0;
  uint64_t updated_monotonic_ns = 0;
  uint64_t ended_realtime_ns = 0;
  std::string run_id;
  std::string version;
  std::vector<std::string> command;
  std::string group;  // empty: shares no budget
  uint32_t on_limit = 0;
  uint64_t wait_at_most_ns = 0;
  uint32_t parent_pid = 0;  // as the process itself sees it, when it began
  std::vector<DeviceSnapshot> devices;
  uint64_t ring_capacity = 0;
  uint64_t events_claimed = 0;
  uint64_t events_dropped = 0;
};

// The ring in a file; a copyable view that must not outlive the SegmentReader it came from.
class FileRingSource {
 public:
  FileRingSource(int fd, uint64_t header_offset, uint64_t events_offset, uint64_t stride)
      : fd_(fd), header_offset_(header_offset), events_offset_(events_offset), stride_(stride) {}
  bool counters(uint64_t* head, uint64_t* dropped) const;
  bool sequences(uint64_t first_slot, uint32_t count, uint64_t* out) const;
  bool events(uint64_t first_slot, uint32_t count, gpucap_event* out) const;

 private:
  int fd_;
  uint64_t header_offset_;
  uint64_t events_offset_;
  uint64_t stride_;
};
using FileRingReader = RingReader<FileRingSource>;

class SegmentReader {
 public:
  SegmentReader() = default;
  ~SegmentReader();
  SegmentReader(SegmentReader&& other) noexcept;
  SegmentReader& operator=(SegmentReader&& other) noexcept;

  // `name` is an entry of the directory. On failure the reader is as if new.
  ReadError open(int directory_fd, const char* name, int* error_number);

  // The counters by entry point are most of a segment: who looks often can do without.
  enum class Counters { kRead, kLeftOut };
  ReadError snapshot(SegmentSnapshot* out, int* error_number, Counters counters = Counters::kRead) const;
  [[nodiscard]] LivenessAnswer liveness() const;
  [[nodiscard]] FileRingReader ring(uint64_t position = 0, uint64_t dropped_before = 0) const;
  // Where struct gpucap_control lies in the file.
  [[nodiscard]] uint64_t control_offset() const { return regions_.control.offset; }
  // Who the file belongs to, which unlike the header's uid cannot be made up.
  [[nodiscard]] uint32_t owner_uid() const { return owner_uid_; }
  // Cleaned names by API number; a number past the end has none.
  [[nodiscard]] const std::vector<std::string>& api_names() const { return api_names_; }

 private:
  struct Regions {
    gpucap_region devices, api_names, api_counters, ring_header, events, control, lanes;
  };
  ReadError open_and_check(int directory_fd, const char* name, int* error_number);
  ReadError check_regions(const gpucap_header& header, uint64_t file_bytes);
  void reset();

  int fd_ = -1;
  uint32_t owner_uid_ = 0;
  Regions regions_ = {};
  uint64_t ring_capacity_ = 0;
  std::vector<std::string> api_names_;
};

// Text fit for a terminal and for JSON: valid UTF-8 without control, line-separating and direction-changing characters;
// each byte or character that is not becomes '?'. Ends at the first NUL.
std::string clean_text(std::string_view bytes);

}  // namespace gpucap::wire
