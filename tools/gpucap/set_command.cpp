// `gpucap set -p PID`: see set_command.h. All is looked at before anything is asked for.
#include "tools/gpucap/set_command.h"

#include <signal.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <optional>
#include <vector>

#include "tools/common/format.h"
#include "tools/common/scan.h"
#include "tools/gpucap/refuse.h"
#include "tools/gpucap/set_group.h"
#include "tools/gpucap/set_limit.h"
#include "wire/control.h"

namespace gpucap::tools {
namespace {

Refusal failed(const std::string& reason) { return {kExitFailed, reason}; }

struct Change {
  const Segment* segment = nullptr;
  uint32_t ordinal = 0;
  uint64_t before_bytes = 0;
  uint64_t used_bytes = 0;
  uint64_t after_bytes = 0;
  bool active = false;
};

// Those of the process as seen from here. One whose pid cannot be seen from here goes by the pid that it knows itself
// by, which is the one that gpucap-top shows, as long as that is one process.
std::optional<Refusal> find_segments(const Scan& scan, int pid, std::vector<const Segment*>* found) {
  std::vector<const Segment*> unseen;
  bool ended = false;
  for (const Segment& segment : scan.segments) {
    if (segment.pid() != pid) continue;
    if (!segment.alive()) {
      ended = true;
    } else {
      (segment.liveness.viewer_pid == pid ? *found : unseen).push_back(&segment);
    }
  }
  const std::string process = "process " + std::to_string(pid);
  if (!found->empty()) return std::nullopt;
  if (unseen.size() > 1) return failed(process + " is several processes, in containers: use gpucap set inside of them");
  *found = unseen;
  if (!found->empty()) return std::nullopt;
  if (kill(pid, 0) != 0 && errno == ESRCH) {
    return failed(ended ? process + " has ended" : "there is no " + process);
  }
  for (const std::string& file : scan.unreadable) {  // by a gpucap of another major version, most likely
    if (file.find("/" + std::to_string(pid) + ".") != std::string::npos) return failed(process + ": " + file);
  }
  return failed(process + " is not under gpucap, has not used CUDA yet, or keeps its figures elsewhere (--dir); " +
                "gpucap check -p " + std::to_string(pid) + " tells");
}

std::optional<Refusal> plan(const std::vector<const Segment*>& segments, const NewLimit& limit, int pid,
                            std::vector<Change>* changes) {
  for (const Segment* segment : segments) {
    for (const wire::DeviceSnapshot& device : segment->snapshot.devices) {
      const gpucap_device& gauges = device.gauges;
      const auto bytes = limit.for_device(gauges.ordinal, uuid_as_text(gauges.uuid), gauges.physical_bytes);
      if (!bytes) continue;
      // No limit is the highest of all numbers.
      if (*bytes > gauges.policy_limit_bytes) {
        return failed("the policy file allows process " + std::to_string(pid) + " at most " +
                      human_bytes(gauges.policy_limit_bytes) + " on GPU " + std::to_string(gauges.ordinal));
      }
      changes->push_back(
          {segment, gauges.ordinal, gauges.limit_bytes, device.used_bytes(), *bytes, gauges.active != 0});
    }
  }
  if (!changes->empty()) return std::nullopt;
  return failed("process " + std::to_string(pid) + " sees no such GPU");
}

std::optional<Refusal> ask(const Directories& directories, const Change& change, int pid) {
  const size_t slash = change.segment->path.rfind('/');
  const std::string folder = change.segment->path.substr(0, slash);
  const std::string name = change.segment->path.substr(slash + 1);
  for (const SegmentDirectory& directory : directories.open) {
    if (directory.path() != folder) continue;
    int error_number = 0;
    const auto error = wire::request_limit(directory.fd(), name.c_str(), static_cast<int>(change.ordinal),
                                           change.after_bytes, &error_number);
    if (error == wire::ControlError::kNone) return std::nullopt;
    const std::string process = "process " + std::to_string(pid);
    if (error == wire::ControlError::kNotOwner) {
      return failed(process + " is not yours: only " + change.segment->user + " and root can change its limit");
    }
    return failed(change.segment->path + " " + wire::to_text(error) +
                  (error_number != 0 ? std::string(" (") + std::strerror(error_number) + ")" : ""));
  }
  return failed(change.segment->path + " is gone");
}

std::string limit_text(uint64_t bytes) { return bytes == GPUCAP_WIRE_NO_LIMIT ? "no limit" : human_bytes(bytes); }

void tell(const std::vector<Change>& changes, int pid) {
  bool any_active = false;
  for (const Change& change : changes) any_active = any_active || change.active;
  for (const Change& change : changes) {
    if (any_active && !change.active) continue;  // cards that it sees and does not use
    std::cout << "process " << pid << ", GPU " << change.ordinal << ": " << limit_text(change.before_bytes) << " -> "
              << limit_text(change.after_bytes) << " (uses " << human_bytes(change.used_bytes) << ")\n";
    if (change.used_bytes > change.after_bytes) {
      std::cout << "  it uses more than that: nothing is taken away, but new requests are refused\n";
    }
  }
}

std::optional<Refusal> set_process(const SetOptions& options, const NewLimit& limit) {
  const Directories directories = open_directories(places_to_look(options.directory));
  if (directories.open.empty() && !directories.errors.empty()) return failed(directories.errors.front());
  const Scan seen = scan(directories);
  std::vector<const Segment*> segments;
  std::vector<Change> changes;
  if (auto refusal = find_segments(seen, options.pid, &segments)) return refusal;
  if (auto refusal = plan(segments, limit, options.pid, &changes)) return refusal;
  for (const Change& change : changes) {
    if (auto refusal = ask(directories, change, options.pid)) return refusal;
  }
  tell(changes, options.pid);
  return std::nullopt;
}

}  // namespace

int set_command(const SetOptions& options) {
  if ((options.pid != 0) == !options.group.empty()) {
    return refuse({kExitRefused, "set: name a process (-p PID) or a group (--group NAME)"});
  }
  NewLimit limit;
  if (const auto problem = limit.parse(options.limit, options.gpu)) return refuse({kExitRefused, "set: " + *problem});
  const auto refusal = options.pid != 0 ? set_process(options, limit) : set_group(options, limit);
  return refusal ? refuse(*refusal) : 0;
}

}  // namespace gpucap::tools
