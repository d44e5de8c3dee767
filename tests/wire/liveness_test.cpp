// Alive, ended or killed, as another process sees it.
#include "wire/liveness.h"

#include "tests/wire/scratch.h"

namespace gpucap::wire::test {
namespace {

TEST(Liveness, ARunningWriterIsAliveUnderItsPid) {
  ScratchDirectory directory;
  Child child(segment_owner(directory.path()));
  ASSERT_EQ(child.hear(), 'r');
  int pid = 0;
  EXPECT_EQ(liveness_of(directory, directory.only_file(), &pid), Liveness::kAlive);
  EXPECT_EQ(pid, child.pid());
}

TEST(Liveness, AKilledWriterIsKilled) {
  ScratchDirectory directory;
  Child child(segment_owner(directory.path()));
  ASSERT_EQ(child.hear(), 'r');
  child.kill_and_wait();
  EXPECT_EQ(liveness_of(directory, directory.only_file()), Liveness::kKilled);
}

TEST(Liveness, AKilledWriterThatNobodyHasWaitedForIsKilled) {
  ScratchDirectory directory;
  Child child(segment_owner(directory.path()));
  ASSERT_EQ(child.hear(), 'r');
  kill(child.pid(), SIGKILL);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(liveness_of(directory, directory.only_file()), Liveness::kKilled);
}

TEST(Liveness, AWriterThatSaidSoHasEnded) {
  ScratchDirectory directory;
  Child child(
      segment_owner(directory.path(), [](SegmentWriter& writer, const Child::Channel&) { writer.mark_ended(); }));
  ASSERT_EQ(child.hear(), 'r');
  child.say('g');
  child.wait();
  EXPECT_EQ(liveness_of(directory, directory.only_file()), Liveness::kEnded);
}

TEST(Liveness, AProgramThatClosedItsDescriptorsIsStillAlive) {
  ScratchDirectory directory;
  Child child(segment_owner(directory.path(), [](SegmentWriter&, const Child::Channel& channel) {
    for (int fd = 100; fd < 1024; ++fd) close(fd);
    channel.say('c');
  }));
  ASSERT_EQ(child.hear(), 'r');
  ASSERT_EQ(child.hear(), 'c');
  int pid = 0;
  EXPECT_EQ(liveness_of(directory, directory.only_file(), &pid), Liveness::kAlive);
  EXPECT_EQ(pid, child.pid());
}

TEST(Liveness, AProgramReplacedThroughExecIsGoneThoughItsPidLives) {
  ScratchDirectory directory;
  int up[2];
  ASSERT_EQ(pipe2(up, O_CLOEXEC), 0);  // closed by the exec
  Child child(segment_owner(directory.path(), [](SegmentWriter&, const Child::Channel& channel) {
    static_cast<void>(channel.hear());
    execlp("sleep", "sleep", "100", nullptr);
    _exit(1);
  }));
  close(up[1]);
  ASSERT_EQ(child.hear(), 'r');
  child.say('g');
  char c = 0;
  EXPECT_EQ(read(up[0], &c, 1), 0);
  close(up[0]);
  ASSERT_EQ(kill(child.pid(), 0), 0);
  EXPECT_EQ(liveness_of(directory, directory.only_file()), Liveness::kKilled);
}

TEST(Liveness, ARecycledPidIsNotTheWriter) {
  ScratchDirectory directory;
  Child child(segment_owner(directory.path(), [](SegmentWriter& writer, const Child::Channel&) {
    writer.header()->pid = static_cast<uint32_t>(getppid());  // a process that lives, started at another time
  }));
  ASSERT_EQ(child.hear(), 'r');
  child.say('g');
  child.wait();
  EXPECT_EQ(liveness_of(directory, directory.only_file()), Liveness::kKilled);
}

}  // namespace
}  // namespace gpucap::wire::test
