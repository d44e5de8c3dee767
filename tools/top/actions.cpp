// A signal, another limit: see actions.h.
#include "tools/top/actions.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/common/format.h"
#include "tools/top/view_footer.h"
#include "wire/control.h"

namespace gpucap::tools {
namespace {

// Of pidfd_open and pidfd_send_signal; the same on every architecture.
constexpr long kPidfdSendSignal = 424;
constexpr long kPidfdOpen = 434;

Outcome failed(const std::string& what, int error_number) { return {false, what + ": " + std::strerror(error_number)}; }

bool lives(const LiveSegment& live) { return live.reader.liveness().liveness == wire::Liveness::kAlive; }

}  // namespace

Outcome send_signal(const ProcessRow& row, const LiveSegment& live, int signal) {
  const std::string what = signal_name(signal) + " to " + std::to_string(row.pid);
  // Holding on to the process before asking whether it is still the one: a pid that was given to another is not hit.
  const auto handle = static_cast<int>(syscall(kPidfdOpen, row.pid, 0));
  const bool has_handle = handle >= 0;
  if (!has_handle && errno != ENOSYS && errno != EPERM) return failed(what, errno);
  if (!lives(live)) {
    if (has_handle) close(handle);
    return {false, std::to_string(row.pid) + " has ended"};
  }
  const long result = has_handle ? syscall(kPidfdSendSignal, handle, signal, nullptr, 0) : kill(row.pid, signal);
  const int error_number = errno;
  if (has_handle) close(handle);
  if (result != 0) return failed(what, error_number);
  return {true, "Sent " + what};
}

Outcome set_limit(const ProcessRow& row, const LiveSegment& live, const Directories& directories,
                  uint64_t limit_bytes) {
  if (!lives(live)) return {false, std::to_string(row.pid) + " has ended"};
  for (const SegmentDirectory& directory : directories.open) {
    if (directory.path() != live.directory) continue;
    int error_number = 0;
    const wire::ControlError error = wire::request_limit(directory.fd(), live.name.c_str(),
                                                         static_cast<int>(row.ordinal), limit_bytes, &error_number);
    if (error != wire::ControlError::kNone) {
      std::string text = "The file of " + std::to_string(row.pid) + " " + wire::to_text(error);
      if (error_number != 0) text += std::string(" (") + std::strerror(error_number) + ")";
      return {false, text};
    }
    const std::string wanted = limit_bytes == GPUCAP_WIRE_NO_LIMIT ? "no cap" : "a cap of " + human_bytes(limit_bytes);
    return {true, "Asked " + std::to_string(row.pid) + " for " + wanted + ": it takes it over at its next request"};
  }
  return {false, "The directory of " + std::to_string(row.pid) + " is gone"};
}

}  // namespace gpucap::tools
