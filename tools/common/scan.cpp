// Finding and reading segments: see scan.h.
#include "tools/common/scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "wire/files.h"

namespace gpucap::tools {
namespace {

constexpr const char* kSharedMemory = "/dev/shm";
constexpr std::string_view kDirectoryPrefix = "gpucap-";
constexpr uint64_t kSecondNs = 1000000000;

std::vector<std::string> names_in(int directory_fd) {
  std::vector<std::string> names;
  wire::DirectoryWalk walk(directory_fd);
  walk.rewind();
  while (const char* name = walk.next()) names.emplace_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> everybodys_defaults() {
  std::vector<std::string> paths;
  const int fd = open(kSharedMemory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return paths;
  for (const std::string& name : names_in(fd)) {
    const std::string_view text = name;
    if (text.substr(0, kDirectoryPrefix.size()) != kDirectoryPrefix) continue;
    const std::string_view uid = text.substr(kDirectoryPrefix.size());
    if (uid.empty() || uid.find_first_not_of("0123456789") != std::string_view::npos) continue;
    paths.push_back(std::string(kSharedMemory) + "/" + name);
  }
  close(fd);
  return paths;
}

// What a sweep leaves on the file of a killed process: see wire/sweep.h. Nobody has swept yet: found at this moment.
uint64_t found_dead_ns(int directory_fd, const char* name, uint64_t now_ns) {
  struct stat status = {};
  if (fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || (status.st_mode & S_ISVTX) == 0) return now_ns;
  return static_cast<uint64_t>(status.st_mtim.tv_sec) * kSecondNs + static_cast<uint64_t>(status.st_mtim.tv_nsec);
}

}  // namespace

SegmentDirectory::~SegmentDirectory() {
  if (fd_ >= 0) close(fd_);
}
SegmentDirectory::SegmentDirectory(SegmentDirectory&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
SegmentDirectory& SegmentDirectory::operator=(SegmentDirectory&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

std::vector<std::string> SegmentDirectory::segment_names() const {
  constexpr std::string_view kSuffix = GPUCAP_WIRE_SUFFIX;
  std::vector<std::string> names = names_in(fd_);
  std::erase_if(names, [&](const std::string& name) {
    return name.front() == '.' || name.size() <= kSuffix.size() ||
           std::string_view(name).substr(name.size() - kSuffix.size()) != kSuffix;
  });
  return names;
}

Places places_to_look(const std::string& dir_option) {
  if (!dir_option.empty()) return {{dir_option}, true, false};
  const char* variable = std::getenv("GPUCAP_DIR");
  if (variable != nullptr && variable[0] != '\0') return {{variable}, false, false};
  Places places{{}, false, true};
  if (geteuid() == 0) places.paths = everybodys_defaults();
  if (places.paths.empty()) {
    places.paths.push_back(std::string(kSharedMemory) + "/" + std::string(kDirectoryPrefix) +
                           std::to_string(geteuid()));
  }
  return places;
}

Directories open_directories(const Places& places) {
  Directories directories;
  for (const std::string& path : places.paths) {
    const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | (places.default_ ? O_NOFOLLOW : 0));
    if (fd >= 0) {
      directories.open.emplace_back(path, fd);
    } else if (errno != ENOENT || places.named) {
      directories.errors.push_back(path + ": " + std::strerror(errno));
    }
  }
  return directories;
}

int Segment::pid() const { return liveness.viewer_pid != 0 ? liveness.viewer_pid : static_cast<int>(snapshot.pid); }

Scan scan(const Directories& directories) {
  Scan result;
  result.realtime_ns = wire::realtime_now_ns();
  result.monotonic_ns = wire::monotonic_now_ns();
  for (const SegmentDirectory& directory : directories.open) {
    for (const std::string& name : directory.segment_names()) {
      const std::string path = directory.path() + "/" + name;
      wire::SegmentReader reader;
      Segment segment;
      int error_number = 0;
      wire::ReadError error = reader.open(directory.fd(), name.c_str(), &error_number);
      if (error == wire::ReadError::kNone) error = reader.snapshot(&segment.snapshot, &error_number);
      if (error != wire::ReadError::kNone) {
        // Swept between the listing and the open: nobody's trouble.
        if (error_number != ENOENT) result.unreadable.push_back(read_failure(path, error, error_number));
        continue;
      }
      segment.path = path;
      segment.liveness = reader.liveness();
      segment.user = user_name(reader.owner_uid());
      segment.api_names = reader.api_names();
      if (!segment.alive()) {
        segment.dead_since_ns = segment.snapshot.ended_realtime_ns != 0
                                    ? segment.snapshot.ended_realtime_ns
                                    : found_dead_ns(directory.fd(), name.c_str(), result.realtime_ns);
      }
      result.segments.push_back(std::move(segment));
    }
  }
  return result;
}

void drop_long_dead(Scan* scan, uint64_t keep_seconds) {
  std::erase_if(scan->segments, [&](const Segment& segment) {
    if (segment.alive()) return false;
    const uint64_t since = segment.dead_since_ns;
    return keep_seconds == 0 || (scan->realtime_ns > since && (scan->realtime_ns - since) / kSecondNs > keep_seconds);
  });
}

void keep_pids(Scan* scan, const std::set<int>& pids) {
  if (pids.empty()) return;
  std::erase_if(scan->segments, [&](const Segment& segment) { return pids.count(segment.pid()) == 0; });
}

void find_origins(Scan* scan) {
  for (Segment& segment : scan->segments) {
    if (segment.alive() && segment.liveness.viewer_pid > 0)
      segment.origin = process_origin(segment.liveness.viewer_pid);
  }
}

uint64_t wall_time_ns(const wire::SegmentSnapshot& snapshot, uint64_t monotonic_ns) {
  // Unsigned: a moment before the creation, which only damage can make, wraps instead of being undefined.
  return monotonic_ns == 0 ? 0 : snapshot.created_realtime_ns + (monotonic_ns - snapshot.created_monotonic_ns);
}

std::string user_name(uint32_t uid) {
  const passwd* entry = getpwuid(uid);
  return entry != nullptr ? wire::clean_text(entry->pw_name) : std::to_string(uid);
}

std::string command_line(const std::vector<std::string>& arguments) {
  std::string line;
  for (const std::string& argument : arguments) {
    if (!line.empty()) line += ' ';
    line += argument;
  }
  return line;
}

std::string read_failure(const std::string& path, wire::ReadError error, int error_number) {
  std::string text = wire::clean_text(path) + ": " + wire::to_text(error);
  if (error_number != 0) text += std::string(" (") + std::strerror(error_number) + ")";
  return text;
}

}  // namespace gpucap::tools
