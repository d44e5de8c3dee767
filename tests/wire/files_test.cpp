// Names, directory walk and the life lock's reach.
#include "wire/files.h"

#include <set>

#include "tests/wire/scratch.h"

namespace gpucap::wire::test {
namespace {

TEST(SegmentName, WhatIsWrittenIsRead) {
  for (const SegmentName& name : {SegmentName{1, 0, false}, SegmentName{4294967295u, UINT64_MAX, true},
                                  SegmentName{4711, 0x0123456789abcdefu, false}}) {
    char text[SegmentName::kMaxBytes];
    format_name(name, text);
    SegmentName read;
    ASSERT_TRUE(parse_name(text, &read)) << text;
    EXPECT_EQ(read.pid, name.pid);
    EXPECT_EQ(read.created_realtime_ns, name.created_realtime_ns);
    EXPECT_EQ(read.temporary, name.temporary);
  }
  char text[SegmentName::kMaxBytes];
  format_name({77, 0xabc, false}, text);
  EXPECT_STREQ(text, "77.0000000000000abc.gpucap");
  format_name({77, 0xabc, true}, text);
  EXPECT_STREQ(text, ".77.0000000000000abc.gpucap.tmp");
}

TEST(SegmentName, NothingElsePasses) {
  for (const char* text :
       {"", ".", "..", "77", "77.gpucap", "77.0000000000000abc.gpucap.tmp", ".77.0000000000000abc.gpucap",
        "077.0000000000000abc.gpucap", "0.0000000000000abc.gpucap", "77.0000000000000ABC.gpucap",
        "77.000000000000abc.gpucap", "77.00000000000000abc.gpucap", "4294967296.0000000000000abc.gpucap",
        "99999999999999999999.0000000000000abc.gpucap", "77.0000000000000abc.gpucapx", "-7.0000000000000abc.gpucap",
        "7 .0000000000000abc.gpucap", "notes.txt"}) {
    SegmentName name;
    EXPECT_FALSE(parse_name(text, &name)) << text;
  }
}

TEST(DirectoryWalk, SeesEveryNameOnceAndAgainAfterRewind) {
  ScratchDirectory directory;
  std::set<std::string> made = {".", ".."};
  for (int i = 0; i < 300; ++i) {
    const std::string name = "a-rather-long-name-to-fill-the-buffer-" + std::to_string(i);
    close(openat(directory.fd(), name.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    made.insert(name);
  }
  DirectoryWalk walk(directory.fd());
  for (int pass = 0; pass < 2; ++pass) {
    std::multiset<std::string> seen;
    walk.rewind();
    while (const char* name = walk.next()) seen.insert(name);
    EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()), made);
    EXPECT_EQ(seen.size(), made.size());
  }
}

TEST(ProcFiles, OwnStartTimeIsFoundAndStable) {
  uint64_t first = 0;
  uint64_t second = 0;
  char state = 0;
  ASSERT_TRUE(read_start_ticks(static_cast<uint32_t>(getpid()), &first, &state));
  ASSERT_TRUE(read_start_ticks(static_cast<uint32_t>(getpid()), &second, &state));
  EXPECT_GT(first, 0u);
  EXPECT_EQ(first, second);
  EXPECT_EQ(state, 'R');
  EXPECT_NE(own_pid_namespace(), 0u);
}

TEST(ErrnoGuard, PutsErrnoBack) {
  errno = ERANGE;
  {
    const ErrnoGuard guard;
    errno = EIO;
  }
  EXPECT_EQ(errno, ERANGE);
}

TEST(ProcFiles, AProcessLivesAsLongAsItsLastThread) {
  int started[2];
  ASSERT_EQ(pipe(started), 0);
  const pid_t child = fork();
  if (child == 0) {
    pthread_t thread;
    pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          pause();
          return nullptr;
        },
        nullptr);
    static_cast<void>(!write(started[1], "x", 1));
    syscall(SYS_exit, 0);  // of this thread alone, which leaves a zombie
  }
  char letter = 0;
  ASSERT_EQ(read(started[0], &letter, 1), 1);
  uint64_t ticks = 0;
  char state = 0;
  for (int i = 0; i < 1000 && state != 'Z'; ++i) {
    ASSERT_TRUE(read_start_ticks(static_cast<uint32_t>(child), &ticks, &state));
    usleep(1000);
  }
  ASSERT_EQ(state, 'Z');
  EXPECT_TRUE(process_has_threads(static_cast<uint32_t>(child), ticks));
  EXPECT_FALSE(process_has_threads(static_cast<uint32_t>(child), ticks + 1)) << "another process of that number";
  kill(child, SIGKILL);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(process_has_threads(static_cast<uint32_t>(child), ticks)) << "a zombie without threads holds nothing";
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(process_has_threads(static_cast<uint32_t>(child), ticks));
  close(started[0]);
  close(started[1]);
}

}  // namespace
}  // namespace gpucap::wire::test
