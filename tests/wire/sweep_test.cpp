// What a sweep removes and, more so, what it does not.
#include "wire/sweep.h"

#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "tests/wire/scratch.h"

namespace gpucap::wire::test {
namespace {

constexpr uint64_t kSecond = 1000000000;

// A segment whose writer is gone; `ended_ago_ns` 0 means killed.
std::string leave_dead_segment(const ScratchDirectory& directory, uint64_t ended_ago_ns) {
  std::string path;
  int up[2];
  EXPECT_EQ(pipe2(up, O_CLOEXEC), 0);
  Child child(segment_owner(directory.path(), [&](SegmentWriter& writer, const Child::Channel& channel) {
    if (ended_ago_ns != 0) {
      writer.mark_ended();
      writer.header()->ended_realtime_ns -= ended_ago_ns;
    }
    const std::string text = writer.path();
    EXPECT_EQ(write(up[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    channel.say('w');
  }));
  EXPECT_EQ(child.hear(), 'r');
  EXPECT_EQ(child.hear(), 'w');
  child.kill_and_wait();
  char text[512];
  const ssize_t got = read(up[0], text, sizeof(text));
  close(up[0]);
  close(up[1]);
  return std::string(text, static_cast<size_t>(got));
}

bool exists(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0;
}

void set_age(const std::string& path, uint64_t seconds) {
  struct timespec times[2] = {};
  clock_gettime(CLOCK_REALTIME, &times[0]);
  times[0].tv_sec -= static_cast<time_t>(seconds);
  times[1] = times[0];
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
}

TEST(Sweep, EndedSegmentsGoAfterTheirKeepTime) {
  ScratchDirectory directory;
  const std::string fresh = leave_dead_segment(directory, 500 * kSecond);
  const std::string old = leave_dead_segment(directory, 700 * kSecond);
  EXPECT_EQ(sweep(directory.fd()).removed, 1u);
  EXPECT_TRUE(exists(fresh));
  EXPECT_FALSE(exists(old));
}

TEST(Sweep, AKilledSegmentIsKeptFromWhenItIsFirstFoundDead) {
  ScratchDirectory directory;
  const std::string path = leave_dead_segment(directory, 0);
  set_age(path, 100000);  // quiet for a day before it was killed
  EXPECT_EQ(sweep(directory.fd()).removed, 0u);
  EXPECT_EQ(sweep(directory.fd()).removed, 0u);
  set_age(path, 500);
  EXPECT_EQ(sweep(directory.fd()).removed, 0u);
  set_age(path, 700);
  EXPECT_EQ(sweep(directory.fd()).removed, 1u);
  EXPECT_FALSE(exists(path));
}

TEST(Sweep, ALiveSegmentStaysHoweverOldAndWhateverItClaims) {
  ScratchDirectory directory;
  Child child(segment_owner(directory.path(), [](SegmentWriter& writer, const Child::Channel& channel) {
    writer.mark_ended();
    writer.header()->ended_realtime_ns = 1;
    channel.say('e');
  }));
  ASSERT_EQ(child.hear(), 'r');
  ASSERT_EQ(child.hear(), 'e');
  set_age(directory.path() + "/" + directory.only_file(), 100000);
  EXPECT_EQ(sweep(directory.fd(), {0, 0, 0}).removed, 0u);
  EXPECT_EQ(directory.file_count(), 1u);
}

TEST(Sweep, AProgramThatClosedItsDescriptorsKeepsItsSegment) {
  ScratchDirectory directory;
  Child child(segment_owner(directory.path(), [](SegmentWriter&, const Child::Channel& channel) {
    for (int fd = 100; fd < 1024; ++fd) close(fd);
    channel.say('c');
  }));
  ASSERT_EQ(child.hear(), 'r');
  ASSERT_EQ(child.hear(), 'c');
  EXPECT_EQ(sweep(directory.fd(), {0, 0, 0}).removed, 0u);
  EXPECT_EQ(directory.file_count(), 1u);
}

TEST(Sweep, OnlySegmentsByNameAndContentAreRemoved) {
  ScratchDirectory directory;
  const std::string content = leave_dead_segment(directory, 700 * kSecond);
  const std::string other_name = directory.path() + "/keep.me";
  std::filesystem::copy_file(content, other_name);
  const std::string foreign = directory.path() + "/77.0000000000000abc.gpucap";
  std::ofstream(foreign) << std::string(5000, 'x');
  const std::string empty = directory.path() + "/78.0000000000000abc.gpucap";
  std::ofstream(empty) << "";
  const std::string folder = directory.path() + "/79.0000000000000abc.gpucap";
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  const std::string pipe_path = directory.path() + "/80.0000000000000abc.gpucap";
  ASSERT_EQ(mkfifo(pipe_path.c_str(), 0600), 0);
  for (const std::string& path : {other_name, foreign, empty, folder, pipe_path}) set_age(path, 100000);
  EXPECT_EQ(sweep(directory.fd(), {0, 0, 0}).removed, 1u);
  EXPECT_FALSE(exists(content));
  for (const std::string& path : {other_name, foreign, empty, folder, pipe_path}) EXPECT_TRUE(exists(path)) << path;
}

TEST(Sweep, LinksAreNeitherFollowedNorRemoved) {
  ScratchDirectory directory;
  ScratchDirectory elsewhere;
  const std::string target = leave_dead_segment(elsewhere, 700 * kSecond);
  const std::string link = directory.path() + "/77.0000000000000abc.gpucap";
  ASSERT_EQ(symlink(target.c_str(), link.c_str()), 0);
  EXPECT_EQ(sweep(directory.fd(), {0, 0, 0}).removed, 0u);
  EXPECT_TRUE(exists(target));
  EXPECT_TRUE(exists(link));
}

TEST(Sweep, AnotherMajorVersionIsLeftToItsOwnSweepers) {
  ScratchDirectory directory;
  const std::string path = leave_dead_segment(directory, 700 * kSecond);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(offsetof(gpucap_header, major));
  file.put(GPUCAP_WIRE_MAJOR + 1);
  file.close();
  EXPECT_EQ(sweep(directory.fd(), {0, 0, 0}).removed, 0u);
  EXPECT_TRUE(exists(path));
}

TEST(Sweep, StaleTemporariesGoFreshAndLockedOnesStay) {
  ScratchDirectory directory;
  const std::string stale = directory.path() + "/.77.0000000000000abc.gpucap.tmp";
  const std::string fresh = directory.path() + "/.78.0000000000000abc.gpucap.tmp";
  const std::string locked = directory.path() + "/.79.0000000000000abc.gpucap.tmp";
  for (const std::string& path : {stale, fresh, locked}) std::ofstream(path) << "";
  for (const std::string& path : {stale, locked}) set_age(path, 61);
  Child child([&](const Child::Channel& channel) {
    take_life_lock(open(locked.c_str(), O_RDWR | O_CLOEXEC));
    channel.say('l');
    static_cast<void>(channel.hear());
  });
  ASSERT_EQ(child.hear(), 'l');
  EXPECT_EQ(sweep(directory.fd()).removed, 1u);
  EXPECT_FALSE(exists(stale));
  EXPECT_TRUE(exists(fresh));
  EXPECT_TRUE(exists(locked));
}

TEST(Sweep, OfManyDeadTheNewestStay) {
  ScratchDirectory directory;
  std::vector<std::string> paths;
  for (uint64_t i = 0; i < 6; ++i) paths.push_back(leave_dead_segment(directory, (100 - i) * kSecond));
  SweepRules rules;
  rules.keep_dead = 2;
  EXPECT_EQ(sweep(directory.fd(), rules).removed, 4u);
  for (size_t i = 0; i < paths.size(); ++i) EXPECT_EQ(exists(paths[i]), i >= 4) << i;
}

TEST(Sweep, ACallExaminesNoMoreThanItMayAndSeveralReachThemAll) {
  ScratchDirectory directory;
  const std::string original = leave_dead_segment(directory, 700 * kSecond);
  for (uint32_t i = 0; i < 40; ++i) {
    char name[SegmentName::kMaxBytes];
    format_name({1000 + i, i, false}, name);
    std::filesystem::copy_file(original, directory.path() + "/" + name);
  }
  SweepRules rules;
  rules.examine_at_most = 8;
  const SweepResult first = sweep(directory.fd(), rules);
  EXPECT_EQ(first.examined, 8u);
  EXPECT_EQ(first.removed, 8u);
  for (int call = 0; call < 5; ++call) sweep(directory.fd(), rules);
  EXPECT_EQ(directory.file_count(), 0u);
}

TEST(Sweep, AStretchKeepsItsShareOfTheDead) {
  ScratchDirectory directory;
  const std::string original = leave_dead_segment(directory, 100 * kSecond);
  for (uint32_t i = 1; i < 30; ++i) {
    char name[SegmentName::kMaxBytes];
    format_name({1000 + i, i, false}, name);
    std::filesystem::copy_file(original, directory.path() + "/" + name);
  }
  SweepRules rules;
  rules.keep_dead = 15;
  rules.examine_at_most = 10;
  EXPECT_EQ(sweep(directory.fd(), rules).removed, 5u);
  for (int call = 0; call < 30; ++call) sweep(directory.fd(), rules);
  EXPECT_LE(directory.file_count(), 15u);
  EXPECT_GE(directory.file_count(), 10u);
}

TEST(Sweep, FilesThatStayDoNotShieldTheOthers) {
  ScratchDirectory directory;
  for (uint32_t i = 0; i < 60; ++i) {
    char name[SegmentName::kMaxBytes];
    format_name({2000 + i, i, false}, name);
    std::ofstream(directory.path() + "/" + name) << "not a segment";
  }
  const std::string dead = leave_dead_segment(directory, 700 * kSecond);
  for (uint32_t i = 60; i < 120; ++i) {
    char name[SegmentName::kMaxBytes];
    format_name({2000 + i, i, false}, name);
    std::ofstream(directory.path() + "/" + name) << "not a segment";
  }
  SweepRules rules;
  rules.examine_at_most = 16;
  for (int call = 0; call < 2000 && exists(dead); ++call) sweep(directory.fd(), rules);
  EXPECT_FALSE(exists(dead));
}

TEST(Sweep, ManySweepersAtOnceAreHarmless) {
  ScratchDirectory directory;
  const std::string original = leave_dead_segment(directory, 700 * kSecond);
  for (uint32_t i = 0; i < 100; ++i) {
    char name[SegmentName::kMaxBytes];
    format_name({1000 + i, i, false}, name);
    std::filesystem::copy_file(original, directory.path() + "/" + name);
  }
  Child live(segment_owner(directory.path()));  // sweeps as well
  ASSERT_EQ(live.hear(), 'r');
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const int fd = open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      sweep(fd);
      close(fd);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(directory.file_count(), 1u);
}

TEST(Sweep, MakingASegmentSweepsItsDirectory) {
  ScratchDirectory directory;
  const std::string old = leave_dead_segment(directory, 700 * kSecond);
  Child child(segment_owner(directory.path()));
  ASSERT_EQ(child.hear(), 'r');
  EXPECT_FALSE(exists(old));
  EXPECT_EQ(directory.file_count(), 1u);
}

}  // namespace
}  // namespace gpucap::wire::test
