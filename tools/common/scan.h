// Finds and reads the segments of a machine. Used by every command of both programs; reads only, apart from the sweep.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tools/common/process_origin.h"
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
  // Since when it is dead: its own word, or for a killed one when it was first found so; 0 of a living one.
  uint64_t dead_since_ns = 0;
  ProcessOrigin origin;  // only after find_origins()
  [[nodiscard]] bool alive() const { return liveness.liveness == wire::Liveness::kAlive; }
  [[nodiscard]] int pid() const;  // as this process would address it, else as the writer knows itself
};

struct Scan {
  std::vector<Segment> segments;
  std::vector<std::string> unreadable;  // "path: reason"
  uint64_t realtime_ns = 0;
  uint64_t monotonic_ns = 0;
};
Scan scan(const Directories& directories);

// How long the dead stay listed where nobody says otherwise, and at most: by then they are swept.
inline constexpr uint64_t kKeepDeadSeconds = 600;
// Leaves out who has been dead for longer; 0 leaves the living only.
void drop_long_dead(Scan* scan, uint64_t keep_seconds);
void keep_pids(Scan* scan, const std::set<int>& pids);  // none named: all stay

// Asks /proc where the living ones belong; only for who shows it, since it costs two files a process.
void find_origins(Scan* scan);

// Wall time of a moment on the monotonic clock as this segment's writer knows both; 0 stays 0.
uint64_t wall_time_ns(const wire::SegmentSnapshot& snapshot, uint64_t monotonic_ns);

std::string user_name(uint32_t uid);
std::string command_line(const std::vector<std::string>& arguments);
std::string read_failure(const std::string& path, wire::ReadError error, int error_number);

}  // namespace gpucap::tools
