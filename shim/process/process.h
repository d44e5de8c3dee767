// The one object of this process: configuration, devices, the table of live allocations, telemetry. Comes to life when
// the driver is first found initialised, and is inert before that, in a child forked afterwards (the driver refuses to
// work there, and the parent's books are not ours), and when disabled. Never destroyed.
#pragma once

#include <atomic>
#include <cstdint>

#include "shim/core/allocation_table.h"
#include "shim/process/config.h"
#include "shim/process/device.h"
#include "shim/process/telemetry.h"

namespace gpucap {

inline constexpr int kMaxDevices = GPUCAP_WIRE_MAX_DEVICES;

// Where NVML's per-process figure comes from; installed by the nvml layer's owner.
struct TruthReader {
  // Finds the device by UUID and answers where its figures come from. Called once a device, under a lock.
  gpucap_truth (*open)(Device& device) = nullptr;
  // Bytes that NVML counts to this process on the device, or -1.
  int64_t (*read)(const Device& device) = nullptr;
  // Bytes in use on the whole device, by everybody, or -1: for telling what a context took where there is no better
  // figure.
  int64_t (*read_whole_device)(const Device& device) = nullptr;
};

class Process;

// What the layers above bring; all of it static.
struct Parts {
  // Fills devices[0..n) with ordinal, uuid, name and size; returns n, or -1 while the driver is not initialised.
  int (*enumerate)(Device* devices, int most) = nullptr;
  TruthReader truth;
  // Brings the charges of what shrinks by itself (pools) up to date; true if any changed. Called before and after NVML
  // is asked: a pool that shrank in between must not be mistaken for driver memory that went.
  bool (*before_look)(Process& process, Device& device) = nullptr;
  const char* const* api_names = nullptr;  // [0] is "none"
  uint32_t api_count = 0;
  const char* version = "";
};

}  // namespace gpucap

// Calls Process::install; the top of the library has it, unit tests do not. Called once, at the first need.
extern "C" __attribute__((weak, visibility("hidden"))) void gpucap_put_together();

namespace gpucap {

class Process {
 public:
  // The live process, or nullptr where gpucap must stay out of the way. One load and one compare once started.
  static Process* get() {
    if (state_.load(std::memory_order_acquire) == State::kActive) [[likely]] {
      return *not_forked_ == kNotForked ? &instance_ : nullptr;
    }
    return start();
  }
  // The live process if there is one already; never wakes it. For what must not start anything: NVML's queries.
  static Process* get_if_started() {
    const bool alive = state_.load(std::memory_order_acquire) == State::kActive && *not_forked_ == kNotForked;
    return alive ? &instance_ : nullptr;
  }
  // What the environment asks, where there is no live process: in a program that does not use CUDA, or not yet, and in
  // a forked child. Read at the first call and kept; starts nothing, prints nothing.
  static const Config& config_without_process();
  // Before the first get(), or from gpucap_put_together; touches nothing else.
  static void install(const Parts& parts) { parts_ = parts; }

  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] int device_count() const { return device_count_; }
  [[nodiscard]] Device* device(int ordinal) {
    return ordinal >= 0 && ordinal < device_count_ ? &devices_[ordinal] : nullptr;
  }
  [[nodiscard]] core::AllocationTable& table() { return table_; }
  [[nodiscard]] Telemetry& telemetry() { return telemetry_; }
  bool bring_up_to_date(Device& device) { return parts_.before_look != nullptr && parts_.before_look(*this, device); }
  [[nodiscard]] uint32_t api_count() const { return parts_.api_count; }
  [[nodiscard]] const char* api_name(uint32_t api) const { return parts_.api_names[api]; }
  [[nodiscard]] const TruthReader& truth() const { return parts_.truth; }

  // Sets up what the first use of a device needs: the segment (once) and the truth. Cheap when done.
  void activate(Device& device) {
    if (!device.active.load(std::memory_order_acquire)) [[unlikely]]
      activate_slow(device);
  }

  // Something that must hold cannot: from here on nothing is given out, and the line says why.
  void close_down(const char* reason);

  // NVML has no figure for this process there: says so once, and goes on by `instead`.
  void lose_truth(Device& device, gpucap_truth instead);

  static void at_exit();  // from the library's destructor

 private:
  enum class State : uint32_t { kUntouched = 0, kStarting, kActive, kInert };
  static constexpr uint32_t kNotForked = 0x600d600d;

  constexpr Process() = default;
  __attribute__((cold)) static Process* start();
  void apply_limits();
  __attribute__((cold)) void activate_slow(Device& device);
  void join_group(Device& device);
  void end();

  static Process instance_;
  static Parts parts_;
  static std::atomic<State> state_;
  static std::atomic<int64_t> starting_pid_;
  static volatile uint32_t* not_forked_;  // on a page that the kernel empties in a forked child

  Config config_;
  Device devices_[kMaxDevices];
  int device_count_ = 0;
  core::AllocationTable table_;
  Telemetry telemetry_;
  wire::GroupMember group_;
  std::mutex activation_;
};

}  // namespace gpucap
