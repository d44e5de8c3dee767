// Finds and reads the segments of a machine. Used by every command of both programs; reads only, apart from the sweep.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/segment_reader.h"

namespace gpucap::tools {

// An open directory that holds segments.
class SegmentDirectory {
 public:
  SegmentDirectory(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~SegmentDirectory();
  SegmentDirectory(SegmentDirectory&& other) noexcept;
  SegmentDirectory& operator=(SegmentDirectory&& other) noexcept;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int fd() const { return fd_; }
  // Names that end as segments do, temporaries left out, sorted.
  [[nodiscard]] std::vector<std::string> segment_names() const;

 private:
  std::string path_;
  int fd_ = -1;
};

// Where to look: what the user named (--dir, else GPUCAP_DIR), else this user's default; for root everybody's defaults.
struct Places {
  std::vector<std::string> paths;
  bool named = false;     // by --dir: it must exist
  bool default_ = false;  // in a place open to all, so links are not followed
};
Places places_to_look(const std::string& dir_option);

struct Directories {
  std::vector<SegmentDirectory> open;
  std::vector<std::string> errors;  // "path: reason"; a default that does not exist is none
};
Directories open_directories(const Places& places);

struct Segment {
  std::string path;
  wire::SegmentSnapshot snapshot;
  wire::LivenessAnswer liveness;
  std::string user;                    // of the file
  std::vector<std::string> api_names;  // by API number
  [[nodiscard]] int pid() const;       // as this process would address it, else as the writer knows itself
};

struct Scan {
  std::vector<Segment> segments;
  std::vector<std::string> unreadable;  // "path: reason"
  uint64_t realtime_ns = 0;
  uint64_t monotonic_ns = 0;
};
Scan scan(const Directories& directories);

std::string user_name(uint32_t uid);
std::string command_line(const std::vector<std::string>& arguments);
std::string read_failure(const std::string& path, wire::ReadError error, int error_number);

}  // namespace gpucap::tools
