// A card for the process layer: what enumerate() finds and what NVML would say of it, in plain variables that a test
// sets. Installed once a case (a case has a process of its own). Test code only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "shim/process/process.h"
#include "shim/process/quota.h"

namespace gpucap::test {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kGiB = uint64_t{1} << 30;

struct FakeCard {
  static inline int device_count = 2;
  static inline std::atomic<bool> driver_initialised{true};
  static inline std::atomic<int> enumerated{0};
  static inline std::atomic<gpucap_truth> source{GPUCAP_TRUTH_NVML};
  static inline std::atomic<int> opened{0};
  static inline std::atomic<int64_t> truth_bytes{0};  // -1: NVML has no figure
  static inline std::atomic<int> looks{0};
  static inline std::function<void()> during_look;  // runs between NVML's being asked and its answer
  static inline std::function<bool()> refresh;      // before_look

  static int enumerate(Device* devices, int most) {
    ++enumerated;
    if (!driver_initialised) return -1;
    const int count = std::min(device_count, most);
    for (int i = 0; i < count; ++i) {
      devices[i].ordinal = static_cast<uint32_t>(i);
      devices[i].uuid[0] = static_cast<uint8_t>(0xa0 + i);
      std::snprintf(devices[i].uuid_text, sizeof(devices[i].uuid_text), "GPU-a%u000000-0000-0000-0000-000000000000",
                    static_cast<unsigned>(i) % 10);
      std::snprintf(devices[i].name, sizeof(devices[i].name), "Fake Card %d", i);
      devices[i].physical_bytes = 16 * kGiB;
    }
    return count;
  }
  static gpucap_truth open(Device&) {
    ++opened;
    return source;
  }
  static int64_t read(const Device&) {
    ++looks;
    const int64_t bytes = truth_bytes;
    if (during_look) during_look();
    return bytes;
  }
  static int64_t read_whole_device(const Device&) { return truth_bytes; }
  static bool before_look(Process&, Device&) { return refresh && refresh(); }
};

inline constexpr const char* kApiNames[] = {"none", "cuMemAlloc_v2", "cuMemFree_v2"};
inline constexpr uint16_t kAlloc = 1, kFree = 2;

inline Parts fake_parts() {
  Parts parts;
  parts.enumerate = FakeCard::enumerate;
  parts.truth.open = FakeCard::open;
  parts.truth.read = FakeCard::read;
  parts.truth.read_whole_device = FakeCard::read_whole_device;
  parts.before_look = FakeCard::before_look;
  parts.api_names = kApiNames;
  parts.api_count = 3;
  parts.version = "9.9.9";
  return parts;
}

// Promised to calls under way, over all lanes.
inline int64_t promised_bytes(const Device& device) {
  int64_t bytes = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) bytes += device.lanes[lane].reserved_bytes;
  return bytes;
}

// No variable of ours leaks in from outside, and the figures go to a folder that goes away.
class ProcessCase : public testing::Test {
 protected:
  ProcessCase() {
    for (const char* name : {"GPUCAP_LIMIT", "GPUCAP_LOG", "GPUCAP_LOG_FILE", "GPUCAP_DIR", "GPUCAP_DISABLE",
                             "GPUCAP_RUN_ID", "GPUCAP_GROUP", "GPUCAP_GROUP_LIMIT", "GPUCAP_ON_LIMIT"})
      unsetenv(name);
    char name[] = "/tmp/gpucap-process-test-XXXXXX";
    folder_ = mkdtemp(name);
    setenv("GPUCAP_DIR", (folder_ + "/segments").c_str(), 1);
  }
  ~ProcessCase() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  // The live process under this limit ("" for none).
  static Process& start(const char* limit) {
    if (*limit != '\0') setenv("GPUCAP_LIMIT", limit, 1);
    Process::install(fake_parts());
    Process* process = Process::get();
    if (process == nullptr) std::abort();
    return *process;
  }

  std::string folder_;
};

}  // namespace gpucap::test
