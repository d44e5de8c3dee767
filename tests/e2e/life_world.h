// What the life-and-death tests share: a world with the awkward programs, and all segments of a process by age.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/world.h"

namespace gpucap::e2e {

struct SeenSegment {
  std::string path;
  wire::SegmentSnapshot snapshot;
  wire::Liveness liveness{};
};

class LifeWorld : public World {
 protected:
  static std::vector<std::string> program(std::initializer_list<std::string> arguments) {
    std::vector<std::string> command = {LIFE_PROGRAM};
    command.insert(command.end(), arguments);
    return command;
  }
  [[nodiscard]] std::string segments() const { return folder_ + "/segments"; }

  // Every readable segment, oldest first; of one process, or of all (pid 0).
  std::vector<SeenSegment> seen(pid_t pid = 0, const std::string& folder = "") {
    std::vector<SeenSegment> found;
    const std::string where = folder.empty() ? segments() : folder;
    const int directory = open(where.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return found;
    for (const auto& entry : std::filesystem::directory_iterator(where)) {
      SeenSegment one;
      one.path = entry.path();
      wire::SegmentReader reader;
      int error_number = 0;
      if (entry.path().extension() != GPUCAP_WIRE_SUFFIX) continue;
      const wire::ReadError error = reader.open(directory, entry.path().filename().c_str(), &error_number);
      EXPECT_EQ(error, wire::ReadError::kNone) << one.path << ": " << wire::to_text(error);
      if (error != wire::ReadError::kNone) continue;
      EXPECT_EQ(reader.snapshot(&one.snapshot, &error_number), wire::ReadError::kNone) << one.path;
      one.liveness = reader.liveness().liveness;
      if (pid == 0 || one.snapshot.pid == static_cast<uint32_t>(pid)) found.push_back(std::move(one));
    }
    close(directory);
    std::sort(found.begin(), found.end(), [](const SeenSegment& a, const SeenSegment& b) {
      return a.snapshot.created_realtime_ns < b.snapshot.created_realtime_ns;
    });
    return found;
  }

  // What gpucap-top prints, with the right exit status and nothing to complain of.
  std::string top(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), TOP_PROGRAM);
    arguments.insert(arguments.end(), {"--dir", segments()});
    Child child(arguments, {});
    EXPECT_EQ(child.finish(), 0) << child.err;
    EXPECT_EQ(child.err, "");
    return child.out;
  }

  // Whether a fresh program finds the cap as the first one did.
  void expect_undisturbed(const char* when) {
    const auto from = std::chrono::steady_clock::now();
    Child child(client({"linked", "until-refused", "alloc", std::to_string(512 * kMiB), "100"}), capped("4G"));
    ASSERT_TRUE(child.wait_for("READY")) << when << child.out << child.err;
    EXPECT_EQ(value_of(child.out, "taken"), "6") << when;
    EXPECT_EQ(value_of(child.out, "result"), "2") << when;
    EXPECT_LT(std::chrono::steady_clock::now() - from, std::chrono::seconds(5)) << when << ": it waited for something";
    expect_true_figures(child.pid);
    EXPECT_EQ(child.finish(), 0) << when;
  }
};

}  // namespace gpucap::e2e
