// The world that an end-to-end test runs a program in: the fake driver, the real library preloaded, a folder and a fake
// machine of its own; and what can be seen from outside: the fake machine's truth and gpucap's figures.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "tests/e2e/child.h"
#include "tests/fake_cuda/truth.h"
#include "wire/segment_reader.h"

namespace gpucap::e2e {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kGiB = uint64_t{1} << 30;

class World : public testing::Test {
 protected:
  World() {
    char name[] = "/dev/shm/gpucap-test-XXXXXX";
    folder_ = mkdtemp(name);
    setenv("FAKE_CUDA_STATE", (folder_ + "/machine").c_str(), 1);
    truth_.open();
  }
  ~World() override { std::system(("rm -rf " + folder_).c_str()); }

  // Capped; an empty limit leaves the variable unset.
  Environment capped(const std::string& limit) {
    Environment environment = bare();
    environment["LD_PRELOAD"] = GPUCAP_LIBRARY;
    environment["GPUCAP_DIR"] = folder_ + "/segments";
    if (!limit.empty()) environment["GPUCAP_LIMIT"] = limit;
    return environment;
  }
  Environment bare() {
    Environment environment;
    environment["LD_LIBRARY_PATH"] = std::string(FAKE_CUDA_FOLDER) + ":" + FAKE_CUDA_FOLDER + "/runtime";
    environment["FAKE_CUDA_STATE"] = folder_ + "/machine";
    return environment;
  }
  std::vector<std::string> client(std::initializer_list<std::string> arguments) {
    std::vector<std::string> command = {CLIENT_PROGRAM};
    command.insert(command.end(), arguments);
    return command;
  }

  // Where a program's FAKE_CUDA_LOG may go, and its calls so far of what begins with that name.
  [[nodiscard]] std::string call_log() const { return folder_ + "/calls"; }
  [[nodiscard]] int calls(const std::string& name) const {
    std::ifstream log(call_log());
    int count = 0;
    for (std::string line; std::getline(log, line);) count += line.rfind(name, 0) == 0;
    return count;
  }

  fake::TruthFigures truth(pid_t pid, int device = 0) {
    fake::TruthFigures figures;
    EXPECT_TRUE(truth_.find(pid, device, &figures)) << "the fake machine has never seen process " << pid;
    return figures;
  }

  // Calls use(descriptor of the folder, file name) for each segment of the process; how many there are.
  template <class Use>
  int for_each_segment(pid_t pid, Use use) {
    const std::string folder = folder_ + "/segments", prefix = std::to_string(pid) + ".";
    DIR* directory = opendir(folder.c_str());
    if (directory == nullptr) return 0;
    int found = 0;
    while (const dirent* entry = readdir(directory)) {
      if (std::string(entry->d_name).rfind(prefix, 0) != 0) continue;
      ++found;
      use(dirfd(directory), entry->d_name);
    }
    closedir(directory);
    return found;
  }

  // The latest snapshot of the process's segment; no devices if there is none.
  wire::SegmentSnapshot segment(pid_t pid, wire::Liveness* liveness = nullptr) {
    wire::SegmentSnapshot snapshot;
    for_each_segment(pid, [&](int folder, const char* name) {
      wire::SegmentReader reader;
      int error_number = 0;
      if (reader.open(folder, name, &error_number) != wire::ReadError::kNone) return;
      EXPECT_EQ(reader.snapshot(&snapshot, &error_number), wire::ReadError::kNone);
      if (liveness != nullptr) *liveness = reader.liveness().liveness;
    });
    return snapshot;
  }

  // gpucap's figure equals the machine's, to the byte: what NVML counts, and managed memory apart.
  void expect_true_figures(pid_t pid, int device = 0) {
    const wire::SegmentSnapshot snapshot = segment(pid);
    ASSERT_GT(snapshot.devices.size(), static_cast<size_t>(device)) << "no segment for process " << pid;
    const gpucap_device& gauges = snapshot.devices[static_cast<size_t>(device)].gauges;
    const fake::TruthFigures figures = truth(pid, device);
    const uint64_t used = snapshot.devices[static_cast<size_t>(device)].used_bytes();
    EXPECT_EQ(used - static_cast<uint64_t>(gauges.managed_bytes), figures.bytes)
        << "linear " << gauges.linear_bytes << " array " << gauges.array_bytes << " pool " << gauges.pool_bytes
        << " vmm " << gauges.vmm_bytes << " managed " << gauges.managed_bytes << " driver " << gauges.driver_bytes;
    EXPECT_EQ(snapshot.devices[static_cast<size_t>(device)].reserved_bytes, 0) << "a promise was left behind";
  }

  static uint64_t number(const std::string& output, const std::string& name) {
    const std::string text = value_of(output, name);
    EXPECT_NE(text, "") << "no " << name << " in:\n" << output;
    return std::strtoull(text.c_str(), nullptr, 10);
  }

  std::string folder_;
  fake::Truth truth_;
};

inline constexpr uint64_t kContext = 543162368;

}  // namespace gpucap::e2e
