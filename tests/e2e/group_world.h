// What the tests of a group's deaths and children share: members of one group in the world of world.h, its file as the
// tools read it, and the sweep.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "tests/e2e/told.h"
#include "wire/control.h"
#include "wire/sweep.h"

namespace gpucap::e2e {

class GroupWorld : public World {
 protected:
  static constexpr uint64_t kLimit = 4 * kGiB;

  Environment member(const char* library = GPUCAP_LIBRARY) {
    Environment environment = capped("");
    environment["LD_PRELOAD"] = library;
    environment["GPUCAP_GROUP"] = "team";
    environment["GPUCAP_GROUP_LIMIT"] = std::to_string(kLimit);
    return environment;
  }

  // No group of that name: no devices.
  wire::GroupSnapshot group() {
    wire::GroupSnapshot snapshot;
    const int directory = open((folder_ + "/segments").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    wire::GroupFile file;
    int error_number = 0;
    if (file.open(directory, "team", false, &error_number) == wire::ControlError::kNone) {
      EXPECT_EQ(file.snapshot(&snapshot, &error_number), wire::ControlError::kNone);
    }
    close(directory);
    return snapshot;
  }
  // The members' shares are what the machine says that each of them holds, and there are no others.
  void expect_true_shares(std::initializer_list<pid_t> members, const std::string& when) {
    const wire::GroupSnapshot seen = group();
    ASSERT_EQ(seen.devices.size(), 1u) << when;
    ASSERT_EQ(seen.members.size(), members.size()) << when;
    uint64_t sum = 0;
    for (const pid_t pid : members) {
      const uint64_t bytes = truth(pid).bytes;
      sum += bytes;
      bool found = false;
      for (const wire::GroupMember& one : seen.members) {
        if (one.viewer_pid != pid) continue;
        found = true;
        EXPECT_EQ(one.shares[0].held_bytes, static_cast<int64_t>(bytes)) << when << ", process " << pid;
      }
      EXPECT_TRUE(found) << when << ", process " << pid << " is no member";
    }
    EXPECT_EQ(seen.devices[0].used_bytes, static_cast<int64_t>(sum)) << when;
  }

  // All that is left of the budget is granted at once, not a block more, and is given back.
  void expect_exactly_the_rest(Told& one, const std::string& when) {
    const uint64_t used = truth_.used(0);
    ASSERT_LT(used, kLimit) << when;
    ASSERT_EQ((kLimit - used) % (2 * kMiB), 0u) << when;
    ASSERT_EQ(one.take("alloc", kLimit - used), 0) << when << ": " << (kLimit - used) << " bytes\n" << one.err;
    EXPECT_LT(one.milliseconds, 100) << when << ": it waited for something";
    EXPECT_EQ(one.take("alloc", 2 * kMiB), 2) << when << ": more than the limit was granted";
    ASSERT_EQ(one.does("give"), 0) << when;
  }

  // A sweep for which no dead file is young; then whether any is left.
  void expect_nothing_left(const std::string& when) {
    const std::string folder = folder_ + "/segments";
    const int directory = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    wire::SweepRules rules;
    rules.keep_ns = rules.keep_temporary_ns = 0;
    for (int i = 0; i < 8; ++i) wire::sweep(directory, rules);  // the first one notes who is dead; each looks at some
    close(directory);
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      ADD_FAILURE() << when << ": left behind: " << entry.path();
  }
};

}  // namespace gpucap::e2e
