// What the tests of wire/ share: a directory that removes itself, a usual segment, and a child process that does
// something and then waits to be told or killed. Test code only.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "wire/files.h"
#include "wire/layout.h"
#include "wire/segment_reader.h"
#include "wire/segment_writer.h"

namespace gpucap::wire::test {

class ScratchDirectory {
 public:
  explicit ScratchDirectory(const char* pattern = "/tmp/gpucap-test-XXXXXX") {
    std::string text = pattern;
    path_ = mkdtemp(text.data());
    fd_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  ~ScratchDirectory() {
    ::close(fd_);
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] size_t file_count() const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) count += entry.path().empty() ? 0 : 1;
    return count;
  }
  [[nodiscard]] std::string only_file() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) return entry.path().filename();
    return "";
  }

 private:
  std::string path_;
  int fd_ = -1;
};

inline constexpr std::array<const char*, 3> kApiNames = {"none", "cuMemAlloc_v2", "cuMemFree_v2"};

inline SegmentSpec usual_spec(const std::string& directory) {
  SegmentSpec spec;
  spec.directory = directory.c_str();
  spec.device_count = 2;
  spec.api_names = kApiNames.data();
  spec.api_count = kApiNames.size();
  spec.ring_capacity = 16;
  spec.run_id = "run-7";
  spec.version = "1.2.3";
  return spec;
}

// Forks a child that runs `body(channel)`; both sides talk in single bytes. The child never returns into the test.
class Child {
 public:
  class Channel {
   public:
    Channel(int in, int out) : in_(in), out_(out) {}
    void say(char c) const {
      while (write(out_, &c, 1) < 0 && errno == EINTR) {
      }
    }
    [[nodiscard]] char hear() const {
      char c = 0;
      while (read(in_, &c, 1) < 0 && errno == EINTR) {
      }
      return c;
    }

   private:
    int in_, out_;
  };

  explicit Child(const std::function<void(const Channel&)>& body) {
    int down[2];
    int up[2];
    if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      close(down[1]);
      close(up[0]);
      body(Channel(down[0], up[1]));
      _exit(0);
    }
    close(down[0]);
    close(up[1]);
    to_ = down[1];
    from_ = up[0];
  }
  ~Child() {
    kill_and_wait();
    close(to_);
    close(from_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] char hear() const { return Channel(from_, to_).hear(); }  // 0 once the child is gone
  void say(char c) const { Channel(from_, to_).say(c); }
  void kill_and_wait() {
    if (waited_) return;
    ::kill(pid_, SIGKILL);
    wait();
  }
  int wait() {
    int status = 0;
    while (!waited_ && waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    waited_ = true;
    return status;
  }

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
  bool waited_ = false;
};

// A child that has a segment and says 'r' (ready) or 'f' (failed); it then runs `then` and waits until it is killed or
// told to go on.
inline std::function<void(const Child::Channel&)> segment_owner(
    const std::string& directory, const std::function<void(SegmentWriter&, const Child::Channel&)>& then = {}) {
  return [directory, then](const Child::Channel& channel) {
    SegmentWriter writer;
    int error_number = 0;
    const SegmentError error = writer.create(usual_spec(directory), &error_number);
    channel.say(error == SegmentError::kNone ? 'r' : 'f');
    if (then) then(writer, channel);
    static_cast<void>(channel.hear());
  };
}

inline Liveness liveness_of(const ScratchDirectory& directory, const std::string& file, int* viewer_pid = nullptr) {
  SegmentReader reader;
  int error_number = 0;
  EXPECT_EQ(reader.open(directory.fd(), file.c_str(), &error_number), ReadError::kNone);
  const LivenessAnswer answer = reader.liveness();
  if (viewer_pid != nullptr) *viewer_pid = answer.viewer_pid;
  return answer.liveness;
}

}  // namespace gpucap::wire::test
