// Creates and owns this process's segment. Called by the shim only, once a process image, under the shim's own
// once-guard. Plain POSIX, no exceptions, no malloc: it runs inside someone else's program. Every failure is a value
// with a reason.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/kept_file.h"
#include "wire/layout.h"
#include "wire/ring_writer.h"

namespace gpucap::wire {

struct SegmentSpec {
  const char* directory = nullptr;  // created with mode 0700 if missing; nothing above it is created
  bool directory_is_default =
      false;                  // the default must belong to us and be 0700, or creation fails (someone else's trap)
  uint32_t device_count = 0;  // <= GPUCAP_WIRE_MAX_DEVICES
  const char* const* api_names = nullptr;  // api_count of them; [0] is "none"
  uint32_t api_count = 0;
  uint32_t lane_count = 1;     // a device, 1 to GPUCAP_WIRE_MAX_LANES
  uint32_t ring_capacity = 0;  // events, a power of two
  const char* run_id = "";     // GPUCAP_RUN_ID or ""
  const char* version = "";
  const char* group = "";  // the budget that the process shares, or ""
  gpucap_on_limit on_limit = GPUCAP_ON_LIMIT_DENY;
  uint64_t wait_at_most_ns = 0;
  // Says what is known of a device, by its `ordinal`, before anybody can see the file. May be null.
  void (*describe)(const void* argument, gpucap_device* device) = nullptr;
  const void* describe_argument = nullptr;
};

enum class SegmentError {
  kNone,
  kBadSpec,
  kNoDirectory,       // cannot be made or opened
  kForeignDirectory,  // belongs to someone else or is open to others
  kCannotCreate,      // open or rename failed
  kNoSpace,           // the pages could not be reserved
  kCannotMap,
};
const char* to_text(SegmentError error);

class SegmentWriter {
 public:
  // Makes, reserves (fallocate, so that a full file system can never fault a later store), fills, locks and publishes
  // the file by rename. On failure nothing is left behind, *error_number is errno, and the writer stays detached. errno
  // itself is preserved. The kept descriptor is moved to 200 or above where the process may have that many. Sweeps a
  // bounded number of stale files of dead processes in the same directory on the way.
  SegmentError create(const SegmentSpec& spec, int* error_number);

  [[nodiscard]] bool attached() const { return base_ != nullptr; }
  gpucap_header* header() const { return static_cast<gpucap_header*>(base_); }
  gpucap_device* device(uint32_t ordinal) const { return devices_ + ordinal; }
  // Of lane 0; those of the other lanes follow, lane after lane.
  gpucap_lane* lanes(uint32_t ordinal) const { return lanes_ + size_t{ordinal} * lane_count_; }
  gpucap_api_counter* counters(uint32_t ordinal) const {
    return counters_ + size_t{ordinal} * lane_count_ * api_count_;
  }
  RingWriter ring() const { return RingWriter(ring_, events_); }
  const gpucap_control* control() const { return control_; }  // what `gpucap set` writes to
  const char* path() const { return file_.path(); }

  // The record lock that says "alive" is lost when the program closes our descriptor, or closes any descriptor of the
  // same file. Takes it again if so. Three system calls, about a microsecond: call it now and then.
  // Any thread; does nothing in a forked child, and nothing while another thread is at it.
  void keep_alive();

  // State becomes ENDED with the time; the file stays for readers until it is swept. Does nothing in a forked child.
  void mark_ended();

  // For a forked child, which inherits mapping and descriptor but owns neither: gives both up and detaches. The parent
  // keeps its lock. Without the call a child does no harm, unless it publishes events.
  void leave_in_child();

 private:
  void* base_ = nullptr;
  size_t bytes_ = 0;
  gpucap_device* devices_ = nullptr;
  gpucap_api_counter* counters_ = nullptr;
  gpucap_ring_header* ring_ = nullptr;
  gpucap_event* events_ = nullptr;
  gpucap_control* control_ = nullptr;
  gpucap_lane* lanes_ = nullptr;
  uint32_t api_count_ = 0;
  uint32_t lane_count_ = 0;
  KeptFile file_;
  int owner_pid_ = 0;     // of the process that created it: a forked child differs
  bool keeping_ = false;  // one keep_alive() at a time, by atomic exchange
};

}  // namespace gpucap::wire
