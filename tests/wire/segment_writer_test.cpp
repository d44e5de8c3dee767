// What the program that hosts the writer would notice: nothing. And what its neighbours see: a whole file or none.
#include "wire/segment_writer.h"

#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/wire/scratch.h"

namespace gpucap::wire::test {
namespace {

mode_t mode_of(const std::string& path) {
  struct stat status = {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

TEST(SegmentWriter, FileHoldsWhatWasSpecified) {
  ScratchDirectory directory;
  Child child(segment_owner(directory.path(), [](SegmentWriter& writer, const Child::Channel&) {
    writer.device(1)->linear_bytes = 4096;
    writer.device(1)->driver_bytes = -96;
    writer.counters(1)[2] = {7, 8, 9, 0};
  }));
  ASSERT_EQ(child.hear(), 'r');
  child.say('g');
  child.wait();
  SegmentReader reader;
  int error_number = 0;
  ASSERT_EQ(reader.open(directory.fd(), directory.only_file().c_str(), &error_number), ReadError::kNone);
  EXPECT_EQ(reader.api_names(), (std::vector<std::string>{"none", "cuMemAlloc_v2", "cuMemFree_v2"}));
  SegmentSnapshot snapshot;
  ASSERT_EQ(reader.snapshot(&snapshot, &error_number), ReadError::kNone);
  EXPECT_EQ(snapshot.pid, static_cast<uint32_t>(child.pid()));
  EXPECT_EQ(snapshot.uid, geteuid());
  EXPECT_EQ(snapshot.run_id, "run-7");
  EXPECT_EQ(snapshot.version, "1.2.3");
  ASSERT_FALSE(snapshot.command.empty());
  EXPECT_NE(snapshot.command[0].find("wire_test"), std::string::npos);
  EXPECT_EQ(snapshot.ring_capacity, 16u);
  ASSERT_EQ(snapshot.devices.size(), 2u);
  EXPECT_EQ(snapshot.devices[0].gauges.limit_bytes, GPUCAP_WIRE_NO_LIMIT);
  EXPECT_EQ(snapshot.devices[1].gauges.ordinal, 1u);
  EXPECT_EQ(snapshot.devices[1].used_bytes(), 4000u);
  EXPECT_EQ(snapshot.devices[1].counters[2].refused, 8u);
}

// A reader that comes at the worst moment must not take a capped process for one without a cap.
TEST(SegmentWriter, DevicesAreDescribedBeforeTheFileHasItsName) {
  ScratchDirectory directory;
  SegmentSpec spec = usual_spec(directory.path());
  spec.describe = [](const void* argument, gpucap_device* device) {
    const auto& where = *static_cast<const ScratchDirectory*>(argument);
    EXPECT_EQ(where.file_count(), 1u);
    EXPECT_EQ(where.only_file()[0], '.') << "it is there already";
    device->limit_bytes = 4096 + device->ordinal;
  };
  spec.describe_argument = &directory;
  SegmentWriter writer;
  int error_number = 0;
  ASSERT_EQ(writer.create(spec, &error_number), SegmentError::kNone);
  EXPECT_EQ(writer.device(0)->limit_bytes, 4096u);
  EXPECT_EQ(writer.device(1)->limit_bytes, 4097u);
}

TEST(SegmentWriter, DirectoryIsMadePrivateWhateverTheUmask) {
  ScratchDirectory scratch;
  for (const mode_t mask : {mode_t{0}, mode_t{0022}, mode_t{0777}}) {
    const std::string path = scratch.path() + "/d" + std::to_string(mask);
    const mode_t before = umask(mask);
    SegmentWriter writer;
    int error_number = 0;
    SegmentSpec spec = usual_spec(path);
    spec.directory_is_default = true;
    const SegmentError error = writer.create(spec, &error_number);
    EXPECT_EQ(umask(before), mask) << "umask was changed";
    ASSERT_EQ(error, SegmentError::kNone) << to_text(error) << error_number;
    EXPECT_EQ(mode_of(path), 0700u);
    EXPECT_EQ(mode_of(writer.path()), 0600u);
  }
}

TEST(SegmentWriter, DefaultDirectoryThatIsOpenToOthersOrNotOursIsRefused) {
  ScratchDirectory scratch;
  const std::string open_to_others = scratch.path() + "/open";
  ASSERT_EQ(mkdir(open_to_others.c_str(), 0700), 0);
  ASSERT_EQ(chmod(open_to_others.c_str(), 0777), 0);
  const std::string link = scratch.path() + "/link";
  ASSERT_EQ(symlink(scratch.path().c_str(), link.c_str()), 0);
  const std::string file = scratch.path() + "/file";
  close(open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  std::vector<std::string> traps = {open_to_others, link, file};
  if (geteuid() == 0) {
    traps.push_back(scratch.path() + "/theirs");
    ASSERT_EQ(mkdir(traps.back().c_str(), 0700), 0);
    ASSERT_EQ(chown(traps.back().c_str(), 65534, 65534), 0);
  }
  for (const std::string& path : traps) {
    SegmentSpec spec = usual_spec(path);
    spec.directory_is_default = true;
    SegmentWriter writer;
    int error_number = 0;
    EXPECT_EQ(writer.create(spec, &error_number), SegmentError::kForeignDirectory) << path;
    EXPECT_NE(error_number, 0);
    EXPECT_FALSE(writer.attached());
  }
}

TEST(SegmentWriter, DirectoryThatTheUserNamesMayBeALink) {
  ScratchDirectory scratch;
  const std::string link = scratch.path() + "/link";
  ASSERT_EQ(symlink("/tmp", link.c_str()), 0);
  ScratchDirectory target;
  unlink(link.c_str());
  ASSERT_EQ(symlink(target.path().c_str(), link.c_str()), 0);
  SegmentWriter writer;
  int error_number = 0;
  EXPECT_EQ(writer.create(usual_spec(link), &error_number), SegmentError::kNone);
  EXPECT_EQ(target.file_count(), 1u);
}

TEST(SegmentWriter, NothingAboveTheDirectoryIsMade) {
  ScratchDirectory scratch;
  SegmentWriter writer;
  int error_number = 0;
  EXPECT_EQ(writer.create(usual_spec(scratch.path() + "/a/b"), &error_number), SegmentError::kNoDirectory);
  EXPECT_EQ(error_number, ENOENT);
  EXPECT_EQ(scratch.file_count(), 0u);
}

TEST(SegmentWriter, BadSpecificationsAreNamed) {
  ScratchDirectory directory;
  const SegmentSpec good = usual_spec(directory.path());
  std::vector<SegmentSpec> bad(7, good);
  bad[0].directory = nullptr;
  bad[1].device_count = GPUCAP_WIRE_MAX_DEVICES + 1;
  bad[2].api_names = nullptr;
  bad[3].api_count = 0;
  bad[4].ring_capacity = 0;
  bad[5].ring_capacity = 12;
  bad[6].directory = "";
  for (const SegmentSpec& spec : bad) {
    SegmentWriter writer;
    int error_number = 0;
    EXPECT_EQ(writer.create(spec, &error_number), SegmentError::kBadSpec);
  }
  EXPECT_EQ(directory.file_count(), 0u);
}

TEST(SegmentWriter, ErrnoAndLowDescriptorsAreLeftAlone) {
  ScratchDirectory directory;
  const int next = dup(0);
  ASSERT_GE(next, 0);
  close(next);
  SegmentWriter writer;
  int error_number = 0;
  errno = ERANGE;
  ASSERT_EQ(writer.create(usual_spec(directory.path()), &error_number), SegmentError::kNone);
  writer.keep_alive();
  writer.mark_ended();
  EXPECT_EQ(errno, ERANGE);
  const int after = dup(0);
  EXPECT_EQ(after, next) << "a descriptor below 200 stayed in use";
  close(after);
  errno = ERANGE;
  SegmentWriter failing;
  EXPECT_NE(failing.create(usual_spec("/proc/nowhere"), &error_number), SegmentError::kNone);
  EXPECT_EQ(errno, ERANGE);
}

TEST(SegmentWriter, FewDescriptorsAreEnough) {
  ScratchDirectory directory;
  Child child([&](const Child::Channel& channel) {
    const struct rlimit few = {40, 40};
    setrlimit(RLIMIT_NOFILE, &few);
    segment_owner(directory.path())(channel);
  });
  ASSERT_EQ(child.hear(), 'r');
  EXPECT_EQ(liveness_of(directory, directory.only_file()), Liveness::kAlive);
}

// The kernel answers a file past RLIMIT_FSIZE with a deadly signal.
TEST(SegmentWriter, FileSizeLimitIsACleanErrorAndNotASignal) {
  ScratchDirectory directory;
  Child child([&](const Child::Channel& channel) {
    const struct rlimit small = {1024, 1024};
    setrlimit(RLIMIT_FSIZE, &small);
    SegmentWriter writer;
    int error_number = 0;
    const SegmentError error = writer.create(usual_spec(directory.path()), &error_number);
    channel.say(error == SegmentError::kNoSpace && error_number == EFBIG ? 'y' : 'n');
  });
  EXPECT_EQ(child.hear(), 'y');
  EXPECT_EQ(directory.file_count(), 0u);
}

class FullDisk : public testing::Test {
 protected:
  void SetUp() override {
    if (mount("none", directory_.path().c_str(), "tmpfs", 0, "size=64k") != 0)
      GTEST_SKIP() << "mounting is not permitted";
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) umount2(directory_.path().c_str(), MNT_DETACH);
  }
  ScratchDirectory directory_;
  bool mounted_ = false;
};

TEST_F(FullDisk, IsACleanErrorAndLeavesNothingBehind) {
  SegmentSpec spec = usual_spec(directory_.path());
  spec.ring_capacity = 4096;
  SegmentWriter writer;
  int error_number = 0;
  EXPECT_EQ(writer.create(spec, &error_number), SegmentError::kNoSpace);
  EXPECT_EQ(error_number, ENOSPC);
  EXPECT_EQ(directory_.file_count(), 0u);
}

TEST_F(FullDisk, NeverFaultsAStoreIntoASegmentThatWasMade) {
  SegmentWriter writer;
  int error_number = 0;
  SegmentSpec spec = usual_spec(directory_.path());
  spec.ring_capacity = 512;
  ASSERT_EQ(writer.create(spec, &error_number), SegmentError::kNone);
  const int fd = open((directory_.path() + "/filler").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  const std::string page(4096, 'x');
  while (write(fd, page.data(), page.size()) > 0) {
  }
  close(fd);
  for (uint64_t i = 0; i < 2000; ++i) EXPECT_TRUE(writer.ring().publish({}));
}

TEST_F(FullDisk, ReadOnlyFileSystemIsACleanError) {
  ASSERT_EQ(mount(nullptr, directory_.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
  SegmentWriter writer;
  int error_number = 0;
  EXPECT_EQ(writer.create(usual_spec(directory_.path()), &error_number), SegmentError::kCannotCreate);
  EXPECT_EQ(error_number, EROFS);
}

TEST(SegmentWriter, AForkedChildDoesNotOwnTheSegment) {
  ScratchDirectory directory;
  Child child(segment_owner(directory.path(), [](SegmentWriter& writer, const Child::Channel& channel) {
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      writer.mark_ended();
      writer.keep_alive();
      writer.leave_in_child();
      channel.say(writer.attached() ? 'n' : 'l');
      _exit(0);
    }
    waitpid(grandchild, nullptr, 0);
    channel.say('g');
  }));
  ASSERT_EQ(child.hear(), 'r');
  EXPECT_EQ(child.hear(), 'l');
  ASSERT_EQ(child.hear(), 'g');
  EXPECT_EQ(liveness_of(directory, directory.only_file()), Liveness::kAlive);
  SegmentReader reader;
  int error_number = 0;
  SegmentSnapshot snapshot;
  ASSERT_EQ(reader.open(directory.fd(), directory.only_file().c_str(), &error_number), ReadError::kNone);
  ASSERT_EQ(reader.snapshot(&snapshot, &error_number), ReadError::kNone);
  EXPECT_EQ(snapshot.state, static_cast<uint32_t>(GPUCAP_STATE_LIVE)) << "the child ended its parent's segment";
}

TEST(SegmentWriter, TheParentMayLeaveWhileAForkedChildLivesOn) {
  ScratchDirectory directory;
  Child child(segment_owner(directory.path(), [](SegmentWriter& writer, const Child::Channel& channel) {
    if (fork() == 0) {
      static_cast<void>(channel.hear());  // until the test closes the pipe
      writer.keep_alive();
      _exit(0);
    }
  }));
  ASSERT_EQ(child.hear(), 'r');
  child.kill_and_wait();
  EXPECT_EQ(liveness_of(directory, directory.only_file()), Liveness::kKilled) << "the lock was inherited";
}

TEST(SegmentWriter, KeepAliveTakesTheLockBackAfterTheProgramClosedEverything) {
  ScratchDirectory directory;
  Child child(segment_owner(directory.path(), [](SegmentWriter& writer, const Child::Channel& channel) {
    for (int fd = 100; fd < 1024; ++fd) close(fd);
    const int taken = fcntl(0, F_DUPFD, 200);  // the number now belongs to the program
    channel.say('c');
    static_cast<void>(channel.hear());
    writer.keep_alive();
    channel.say(fcntl(taken, F_GETFD) >= 0 ? 'k' : 'x');
  }));
  ASSERT_EQ(child.hear(), 'r');
  ASSERT_EQ(child.hear(), 'c');
  const std::string file = directory.only_file();
  const int fd = openat(directory.fd(), file.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_FALSE(query_life_lock(fd).held);
  child.say('g');
  EXPECT_EQ(child.hear(), 'k') << "the program's own descriptor was closed";
  EXPECT_TRUE(query_life_lock(fd).held);
  EXPECT_EQ(query_life_lock(fd).holder_pid, child.pid());
  close(fd);
}

TEST(SegmentWriter, KeepAliveTakesTheLockBackAfterAnotherDescriptorOfTheFileWasClosed) {
  ScratchDirectory directory;
  Child child(segment_owner(directory.path(), [](SegmentWriter& writer, const Child::Channel& channel) {
    close(open(writer.path(), O_RDONLY | O_CLOEXEC));  // drops the lock: such are POSIX locks
    channel.say('c');
    static_cast<void>(channel.hear());
    writer.keep_alive();
    channel.say('k');
  }));
  ASSERT_EQ(child.hear(), 'r');
  ASSERT_EQ(child.hear(), 'c');
  const int fd = openat(directory.fd(), directory.only_file().c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_FALSE(query_life_lock(fd).held);
  child.say('g');
  ASSERT_EQ(child.hear(), 'k');
  EXPECT_TRUE(query_life_lock(fd).held);
  close(fd);
}

TEST(SegmentWriter, ASecondSegmentInOneProcessLeavesTheFirstOneItsLock) {
  ScratchDirectory directory;
  Child child(segment_owner(directory.path(), [&](SegmentWriter&, const Child::Channel& channel) {
    static_cast<void>(channel.hear());
    SegmentWriter second;
    int error_number = 0;
    channel.say(second.create(usual_spec(directory.path()), &error_number) == SegmentError::kNone ? '2' : 'f');
    static_cast<void>(channel.hear());
  }));
  ASSERT_EQ(child.hear(), 'r');
  const std::string first = directory.only_file();
  child.say('g');
  ASSERT_EQ(child.hear(), '2');
  const int fd = openat(directory.fd(), first.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_TRUE(query_life_lock(fd).held);
  close(fd);
}

}  // namespace
}  // namespace gpucap::wire::test
