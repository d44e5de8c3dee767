// `gpucap check -p PID`: whether a process is under gpucap, and what rules it. Looks at /proc and at its segment.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "tools/common/format.h"
#include "tools/common/names.h"
#include "tools/common/scan.h"
#include "tools/gpucap/check_command.h"
#include "wire/control.h"

namespace gpucap::tools {
namespace {

struct Mappings {
  bool readable = false;
  std::string library;  // path of libgpucap.so as it was loaded
  bool deleted = false;
  bool cuda = false;
};

Mappings mappings_of(int pid) {
  Mappings mappings;
  std::ifstream file("/proc/" + std::to_string(pid) + "/maps");
  mappings.readable = file.is_open();
  for (std::string line; std::getline(file, line);) {
    const size_t slash = line.find('/');
    if (slash == std::string::npos) continue;
    const std::string path = line.substr(slash);
    const std::string name = path.substr(path.rfind('/') + 1);
    if (name.compare(0, 12, "libgpucap.so") == 0) {
      mappings.library = path;
      mappings.deleted = path.find(" (deleted)") != std::string::npos;
    }
    mappings.cuda = mappings.cuda || name.compare(0, 10, "libcuda.so") == 0;
  }
  return mappings;
}

// A variable that the process was started with; empty if it was not, or cannot be looked at.
std::string started_with(int pid, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
  for (std::string entry; std::getline(file, entry, '\0');) {
    if (entry.compare(0, name.size() + 1, name + "=") == 0) return entry.substr(name.size() + 1);
  }
  return "";
}

std::string on_limit_text(const wire::SegmentSnapshot& snapshot) {
  const std::string text = on_limit_name(snapshot.on_limit);
  if (snapshot.on_limit != GPUCAP_ON_LIMIT_WAIT) return text;
  if (snapshot.wait_at_most_ns == 0) return text + " without end";
  const uint64_t ms = snapshot.wait_at_most_ns / 1000000;
  return text + " for up to " + (ms < 1000 ? std::to_string(ms) + "ms" : human_duration(ms / 1000));
}

// The process knows its group's figures as it last saw them; the group's file, where it can be read, as they are.
void refresh_group(const Segment& segment, gpucap_device* gauges) {
  const std::string folder = segment.path.substr(0, segment.path.rfind('/'));
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  wire::GroupFile file;
  wire::GroupSnapshot group;
  int ignored = 0;
  const bool seen = file.open(fd, segment.snapshot.group, false, &ignored) == wire::ControlError::kNone &&
                    file.snapshot(&group, &ignored) == wire::ControlError::kNone;
  close(fd);
  for (size_t i = 0; seen && i < group.devices.size(); ++i) {
    if (std::memcmp(group.devices[i].uuid, gauges->uuid, sizeof(gauges->uuid)) != 0) continue;
    gauges->group_used_bytes = static_cast<uint64_t>(group.devices[i].used_bytes);
    gauges->group_limit_bytes = group.devices[i].limit_bytes;
  }
}

void tell_device(const wire::DeviceSnapshot& device, const Segment& segment, Findings* findings) {
  const wire::SegmentSnapshot& snapshot = segment.snapshot;
  gpucap_device gauges = device.gauges;
  if (!snapshot.group.empty()) refresh_group(segment, &gauges);
  std::string text;
  if (gauges.limit_bytes == GPUCAP_WIRE_NO_LIMIT) {
    text = "no cap of its own";
  } else {
    text = "cap " + human_bytes(gauges.limit_bytes) + " (from " + limit_source_name(gauges.limit_source) + ")";
  }
  text += ", uses " + human_bytes(device.used_bytes());
  if (!snapshot.group.empty()) {
    text += ", group " + snapshot.group + " " + human_bytes(gauges.group_used_bytes) + " of " +
            (gauges.group_limit_bytes == GPUCAP_WIRE_NO_LIMIT ? "no limit" : human_bytes(gauges.group_limit_bytes));
  }
  if (gauges.policy_limit_bytes != GPUCAP_WIRE_NO_LIMIT) {
    text += ", policy at most " + human_bytes(gauges.policy_limit_bytes);
  }
  if (gauges.refused_count > 0) text += ", " + std::to_string(gauges.refused_count) + " refused";
  findings->ok("GPU " + std::to_string(gauges.ordinal), text);
  if (gauges.truth != GPUCAP_TRUTH_NVML && gauges.active != 0) {
    findings->warn("GPU " + std::to_string(gauges.ordinal),
                   "NVML gives no figure for it: the driver's own share is an estimate");
  }
}

void tell_segment(const Segment& segment, Findings* findings) {
  const wire::SegmentSnapshot& snapshot = segment.snapshot;
  findings->ok("active", "version " + snapshot.version + ", " + segment.path);
  findings->ok("on limit", on_limit_text(snapshot));
  bool any_active = false;
  for (const auto& device : snapshot.devices) any_active = any_active || device.gauges.active != 0;
  for (const auto& device : snapshot.devices) {
    if (device.gauges.active != 0 || !any_active) tell_device(device, segment, findings);
  }
}

// It has the library, but shows no figures where we look.
void tell_silent(int pid, const Mappings& mappings, const CheckOptions& options, Findings* findings) {
  const std::string directory = started_with(pid, "GPUCAP_DIR");
  const std::string disable = started_with(pid, "GPUCAP_DISABLE");
  if (!disable.empty() && disable != "0") {
    findings->fail("active", "it was started with GPUCAP_DISABLE=" + disable);
  } else if (!mappings.cuda) {
    findings->warn("active", "it has not used CUDA yet, so there is nothing to cap");
  } else if (!directory.empty() && directory != options.directory) {
    findings->fail("active", "no figures here, but it was started with GPUCAP_DIR: add --dir " + directory);
  } else {
    findings->fail("active",
                   "it uses CUDA, but its figures are not here: another directory (--dir), or it could not "
                   "make its file, which it says in its log");
  }
}

}  // namespace

void check_process(const CheckOptions& options, Findings* findings) {
  const int pid = options.pid;
  if (kill(pid, 0) != 0 && errno == ESRCH) {
    findings->fail("process", "there is no process " + std::to_string(pid));
    return;
  }
  const Directories directories = open_directories(places_to_look(options.directory));
  for (const std::string& error : directories.errors) findings->fail("directory", error);
  const Scan seen = scan(directories);
  const Segment* found = nullptr;
  for (const Segment& segment : seen.segments) {
    if (segment.alive() && segment.liveness.viewer_pid == pid) found = &segment;
  }
  const Mappings mappings = mappings_of(pid);
  if (!mappings.readable) {
    findings->warn("library", std::string("whether it is loaded cannot be seen: ") + std::strerror(errno));
  } else if (mappings.library.empty()) {
    const std::string preload = started_with(pid, "LD_PRELOAD");
    findings->fail("library",
                   "libgpucap.so is not in the process" + (preload.find("libgpucap") != std::string::npos
                                                               ? ", although it was started with LD_PRELOAD=" + preload
                                                               : ": start it with gpucap run, or set LD_PRELOAD"));
  } else if (mappings.deleted) {
    findings->warn("library", mappings.library + ": replaced since; the process still runs the old one");
  } else {
    findings->ok("library", mappings.library);
  }
  if (found != nullptr) {
    tell_segment(*found, findings);
  } else if (mappings.readable && !mappings.library.empty()) {
    tell_silent(pid, mappings, options, findings);
  } else if (!mappings.readable) {
    findings->fail("active", "its figures are not here; look as its owner or as root, or with --dir");
  }
}

}  // namespace gpucap::tools
