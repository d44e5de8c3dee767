#include "shim/process/process.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "shim/process/log.h"
#include "shim/process/pages.h"
#include "shim/process/quota.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18  // Linux 4.14
#endif

namespace gpucap {
namespace {

// For config_without_process(). The word beside it is 0 before, the pid of whoever reads it, and then kConfigRead.
constinit Config early_config;
constinit std::atomic<int64_t> early_state{0};
constexpr int64_t kConfigRead = -1;

volatile uint32_t before_start = 0;
volatile uint32_t* fork_mark = nullptr;

void forget_in_child() { *fork_mark = 0; }

// A page that reads zero in a child, however it was forked. Older kernels: told by the C library's fork only.
volatile uint32_t* make_fork_mark() {
  static volatile uint32_t without_a_page = 0;
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  fork_mark = page == MAP_FAILED ? &without_a_page : static_cast<volatile uint32_t*>(page);
  if (page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK) != 0)
    pthread_atfork(nullptr, nullptr, forget_in_child);
  return fork_mark;
}

}  // namespace

constinit Process Process::instance_;
constinit Parts Process::parts_;
constinit std::atomic<Process::State> Process::state_{State::kUntouched};
constinit std::atomic<int64_t> Process::starting_pid_{0};
constinit volatile uint32_t* Process::not_forked_ = &before_start;

Process* Process::start() {
  State state = state_.load(std::memory_order_acquire);
  if (state == State::kInert) return nullptr;
  if (state == State::kUntouched) {
    if (state_.compare_exchange_strong(state, State::kStarting)) {
      const int saved = errno;
      starting_pid_.store(getpid());
      Process& process = instance_;
      process.device_count_ = 0;
      if (parts_.enumerate == nullptr && gpucap_put_together != nullptr) gpucap_put_together();
      const int count = parts_.enumerate == nullptr ? -1 : parts_.enumerate(process.devices_, kMaxDevices);
      State next = State::kUntouched;  // the driver is not initialised yet: ask again at the next call
      if (count >= 0) {
        read_config(&process.config_);
        not_forked_ = make_fork_mark();
        next = process.config_.disabled ? State::kInert : State::kActive;
      }
      if (next == State::kActive) {
        process.device_count_ = count;
        process.table_.set_pages(kernel_pages());
        set_up_log(process.config_.log_level, process.config_.log_file);
        for (int i = 0; i < process.config_.complaint_count; ++i)
          log_line(LogLevel::kError, "%s", process.config_.complaints[i]);
        process.apply_limits();
        *not_forked_ = kNotForked;
      }
      state_.store(next, std::memory_order_release);
      errno = saved;
      return next == State::kActive ? &instance_ : nullptr;
    }
  }
  // Another thread is at it. In a child forked at this very moment that thread does not exist.
  while ((state = state_.load(std::memory_order_acquire)) == State::kStarting) {
    if (starting_pid_.load() != 0 && starting_pid_.load() != getpid()) return nullptr;
    sched_yield();
  }
  return state == State::kActive && *not_forked_ == kNotForked ? &instance_ : nullptr;
}

const Config& Process::config_without_process() {
  int64_t state = early_state.load(std::memory_order_acquire);
  while (state != kConfigRead) {
    const int64_t self = getpid();
    if (state == self) {
      sched_yield();  // another thread is at it
      state = early_state.load(std::memory_order_acquire);
    } else if (early_state.compare_exchange_strong(state, self)) {  // also in a child forked while its parent read
      const int saved = errno;
      new (&early_config) Config;  // in place: it is too large for somebody else's stack
      read_config(&early_config);
      errno = saved;
      early_state.store(kConfigRead, std::memory_order_release);
      break;
    }
  }
  return early_config;
}

void Process::apply_limits() {
  for (int i = 0; i < device_count_; ++i) {
    Device& device = devices_[i];
    const uint64_t limit = config_.limit_of(device.ordinal, device.uuid_text, device.physical_bytes);
    const auto of_policy = [&](const auto& policy) {
      return policy.for_device(device.ordinal, device.uuid_text, device.physical_bytes);
    };
    device.ledger.set_limit(limit);
    device.policy_limit = of_policy(config_.policy);
    device.group_policy_limit =
        config_.policy.group[0] != '\0' ? of_policy(config_.policy.group_policy) : of_policy(config_.group_policy);
    device.limit_source = limit == core::kNoLimit        ? GPUCAP_LIMIT_FROM_NOWHERE
                          : limit == device.policy_limit ? GPUCAP_LIMIT_FROM_POLICY
                                                         : GPUCAP_LIMIT_FROM_ENVIRONMENT;
  }
  for (int i = 0; i < config_.limits.count(); ++i) {
    const core::LimitRule& rule = config_.limits.rule(i);
    if (rule.key == core::LimitRule::Key::kOrdinal && rule.ordinal >= static_cast<uint32_t>(device_count_))
      log_line(LogLevel::kWarn, "GPUCAP_LIMIT names device %u, but this process sees %d device(s), numbered from 0",
               rule.ordinal, device_count_);
  }
}

void Process::activate_slow(Device& device) {
  const int saved = errno;
  const std::lock_guard guard(activation_);
  if (device.gauge == nullptr) {
    telemetry_.set_up(config_, devices_, device_count_, parts_.api_names, parts_.api_count, parts_.version);
  }
  if (!device.active.load(std::memory_order_relaxed)) {
    const gpucap_truth truth = parts_.truth.open == nullptr ? GPUCAP_TRUTH_NONE : parts_.truth.open(device);
    set(device.gauge->truth, static_cast<uint32_t>(truth));
    if (truth != GPUCAP_TRUTH_NVML) lose_truth(device, truth);
    join_group(device);
    set(device.gauge->active, uint64_t{1});
    device.driver_changed_at_ns.store(monotonic_ns(), std::memory_order_relaxed);  // all is new
    device.stale.store(true, std::memory_order_relaxed);
    device.active.store(true, std::memory_order_release);
  }
  errno = saved;
}

void Process::lose_truth(Device& device, gpucap_truth instead) {
  if (device.truth_missing.exchange(true)) return;
  set(device.gauge->truth, static_cast<uint32_t>(instead));
  log_line(LogLevel::kWarn, "NVML has no figure for this process on GPU %u: of what the driver takes by itself, %s",
           device.ordinal,
           instead == GPUCAP_TRUTH_DEVICE_DIFF ? "only contexts are counted, by how much the card's use grew"
                                               : "nothing is counted");
}

void Process::end() {
  telemetry_.mark_ended();
  group_.leave();
}

void Process::at_exit() {
  if (state_.load(std::memory_order_acquire) == State::kActive && *not_forked_ == kNotForked) instance_.end();
}

}  // namespace gpucap
