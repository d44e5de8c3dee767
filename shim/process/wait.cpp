// GPUCAP_ON_LIMIT=wait: a request that does not fit stands in line instead of being refused. Sleeps in short steps and
// looks, so that it needs nobody to wake it: who holds the memory may be killed at any moment. See quota.h.
//
// Signals: a handler that was installed without SA_RESTART (Python's, for Ctrl-C) ends the wait, and the program gets
// its out-of-memory error and control; for a second after that the thread waits for nothing, since allocators ask again
// after freeing what they cached.
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>

#include "shim/process/clock.h"
#include "shim/process/limits.h"
#include "shim/process/log.h"
#include "shim/process/quota_parts.h"

namespace gpucap {
namespace {

constexpr uint64_t kShortestStep_ns = 2'000'000;
constexpr uint64_t kLongestStep_ns = 50'000'000;
constexpr uint64_t kDeadlock_ns = 10'000'000'000;
constexpr uint64_t kAfterSignal_ns = 1'000'000'000;

thread_local uint64_t wait_for_nothing_until_ns __attribute__((tls_model("initial-exec"))) = 0;

// read() on a timer goes on after a handler with SA_RESTART and is ended by one without; poll and nanosleep end at any.
class Sleeper {
 public:
  Sleeper() : fd_(wire::move_descriptor_high(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC))) {}
  ~Sleeper() {
    if (fd_ >= 0) close(fd_);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  // False if a signal's handler wants the program to go on.
  bool sleep() {
    const timespec time = {0, static_cast<long>(step_ns_)};
    step_ns_ = step_ns_ * 2 > kLongestStep_ns ? kLongestStep_ns : step_ns_ * 2;
    const itimerspec once = {{0, 0}, time};
    uint64_t expired = 0;
    if (fd_ < 0 || timerfd_settime(fd_, 0, &once, nullptr) != 0)
      return nanosleep(&time, nullptr) == 0 || errno != EINTR;
    return read(fd_, &expired, sizeof(expired)) > 0 || errno != EINTR;
  }

 private:
  int fd_;
  uint64_t step_ns_ = kShortestStep_ns;
};

// Shows for as long as it lives that somebody waits.
class WaitShown {
 public:
  WaitShown(Process& process, Device& device, uint16_t api, uint64_t bytes, const char* why)
      : device_(device), bytes_(bytes), began_ns_(monotonic_ns()) {
    gpucap_device& gauge = *device.gauge;
    if (std::atomic_ref<uint64_t>(gauge.waiting_count).fetch_add(1) == 0) set(gauge.waiting_monotonic_ns, began_ns_);
    add(gauge.waiting_bytes, bytes);
    Event event;
    event.api = api;
    event.operation = GPUCAP_OP_WAIT;
    event.bytes = bytes;
    event.refused_by = obstacle;
    process.telemetry().record(device, event);
    log_line_rarely(LogLevel::kWarn, "waiting for %s for %s on GPU %u: %s [pid %ld]",
                    core::BytesText(static_cast<int64_t>(bytes > INT64_MAX ? INT64_MAX : bytes)).text,
                    RequestName(process, api).text, device.ordinal, why, static_cast<long>(getpid()));
  }
  ~WaitShown() {
    gpucap_device& gauge = *device_.gauge;
    add(gauge.waiting_bytes, uint64_t{0} - bytes_);
    if (std::atomic_ref<uint64_t>(gauge.waiting_count).fetch_sub(1) == 1) set(gauge.waiting_monotonic_ns, uint64_t{0});
    add(gauge.waits_count, 1);
    add(gauge.waits_ns, monotonic_ns() - began_ns_);
  }
  WaitShown(const WaitShown&) = delete;
  WaitShown& operator=(const WaitShown&) = delete;
  [[nodiscard]] uint64_t waited_ns() const { return monotonic_ns() - began_ns_; }

 private:
  Device& device_;
  uint64_t bytes_;
  uint64_t began_ns_;
};

bool too_late(const Process& process, uint64_t waited_ns) {
  const uint64_t at_most = process.config().on_limit.wait_ns;
  return at_most != 0 && waited_ns >= at_most;
}

// Nobody who holds memory of the budget can give any back, for they all wait, and it has been so for a while.
class DeadlockWatch {
 public:
  bool found(Device& device) {
    const int64_t used = device.group->use(device.group_number, false).bytes;
    const bool stuck = device.group->is_last_of_a_deadlock(device.group_number);
    const uint64_t now = monotonic_ns();
    if (!stuck || used != used_) since_ns_ = now;
    used_ = used;
    return now - since_ns_ >= kDeadlock_ns;
  }

 private:
  int64_t used_ = -1;
  uint64_t since_ns_ = monotonic_ns();
};

}  // namespace

Verdict wait_in_line(Process& process, Device& device, const Request& request) {
  if (monotonic_ns() < wait_for_nothing_until_ns) return Verdict::kRefused;
  // What can never fit is not waited for.
  if (request.bytes > standing_group_limit(device)) return Verdict::kRefused;
  const int saved = errno;
  const WaitShown shown(process, device, request.api, request.bytes,
                        ObstacleText(process, device, obstacle, true).text);
  Sleeper sleeper;
  DeadlockWatch deadlock;
  uint64_t ticket = 0;
  Verdict verdict = Verdict::kRefused;
  for (;;) {
    if (ticket == 0 && !device.in_line.exchange(true))
      ticket = device.group->begin_wait(device.group_number, request.bytes);
    if (!sleeper.sleep()) {
      wait_for_nothing_until_ns = monotonic_ns() + kAfterSignal_ns;
      break;
    }
    refresh_limit(process, device);
    look_if_stale(process, device);
    if (ticket != 0) {
      const std::lock_guard guard(device.slow);
      obstacle = try_both(device, request.bytes, {device.ledger.limit(), device.group_policy_limit}, ticket, true);
    }
    if (ticket != 0 && obstacle == GPUCAP_REFUSED_BY_NOTHING) {
      verdict = Verdict::kGranted;
      break;
    }
    if (obstacle == GPUCAP_REFUSED_BY_CAP || too_late(process, shown.waited_ns())) break;
    if (ticket != 0 && deadlock.found(device)) {
      log_line_rarely(LogLevel::kWarn,
                      "waiting was in vain: all that hold memory of group '%s' on GPU %u wait for more [pid %ld]",
                      device.group->name(), device.ordinal, static_cast<long>(getpid()));
      break;
    }
  }
  if (ticket != 0) {
    device.group->end_wait(device.group_number);
    device.in_line.store(false);
  }
  errno = saved;
  return verdict;
}

bool wait_for_card(Process& process, Device& device, uint16_t api, uint64_t bytes, uint64_t* began_ns) {
  if (process.config().on_limit.mode != core::OnLimitValue::Mode::kWait) return false;
  const uint64_t now = monotonic_ns();
  if (*began_ns == 0) *began_ns = now;
  if (now < wait_for_nothing_until_ns || too_late(process, now - *began_ns) || bytes > device.physical_bytes)
    return false;
  const int64_t used_at_first = process.truth().read_whole_device(device);
  if (used_at_first < 0) return false;  // nobody can say when there is room
  const int saved = errno;
  obstacle = GPUCAP_REFUSED_BY_CARD;
  bool again = false;
  {
    const WaitShown shown(process, device, api, bytes, "the card is full");
    Sleeper sleeper;
    while (!again && !too_late(process, monotonic_ns() - *began_ns)) {
      if (!sleeper.sleep()) {
        wait_for_nothing_until_ns = monotonic_ns() + kAfterSignal_ns;
        break;
      }
      const int64_t used = process.truth().read_whole_device(device);
      if (used < 0) break;
      // More room than when the driver said no, or plainly enough (it may only have been in pieces).
      const auto room = static_cast<int64_t>(device.physical_bytes) - used;
      again = used < used_at_first || room >= static_cast<int64_t>(bytes + bytes / 8);
    }
  }
  errno = saved;
  return again;
}

}  // namespace gpucap
