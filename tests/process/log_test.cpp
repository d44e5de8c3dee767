#include "shim/process/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <regex>
#include <thread>
#include <vector>

#include "tests/process/capture.h"
#include "tests/process/fake_card.h"

namespace gpucap {
namespace {

using test::Capture;
using test::content_of;
using test::count_of;

class LogTest : public test::ProcessCase {
 protected:
  static void say_on_every_level() {
    log_line(LogLevel::kError, "an error");
    log_line(LogLevel::kWarn, "a warning");
    log_line(LogLevel::kInfo, "some information");
    log_line(LogLevel::kDebug, "a detail");
  }
};

TEST_F(LogTest, SilentBeforeItIsSetUp) {
  Capture errors(STDERR_FILENO);
  say_on_every_level();
  log_line_rarely(LogLevel::kError, "an error");
  EXPECT_FALSE(log_enabled(LogLevel::kError));
  EXPECT_EQ(errors.text(), "");
}

class Levels : public LogTest, public testing::WithParamInterface<int> {};
TEST_P(Levels, LinesUpToTheLevelAreWrittenAndNoOthers) {
  const auto level = static_cast<LogLevel>(GetParam());
  set_up_log(level, "");
  Capture errors(STDERR_FILENO), output(STDOUT_FILENO);
  say_on_every_level();
  const std::string all[] = {"gpucap: an error\n", "gpucap: a warning\n", "gpucap: some information\n",
                             "gpucap: a detail\n"};
  std::string expected;
  for (int i = 0; i < GetParam(); ++i) expected += all[i];
  EXPECT_EQ(errors.text(), expected);
  EXPECT_EQ(output.text(), "") << "never on stdout";
  for (int i = 1; i <= 4; ++i) EXPECT_EQ(log_enabled(static_cast<LogLevel>(i)), i <= GetParam());
}
INSTANTIATE_TEST_SUITE_P(All, Levels, testing::Range(0, 5));

TEST_F(LogTest, TextIsFormattedAndNeverTakenAsAFormatAgain) {
  set_up_log(LogLevel::kWarn, "");
  Capture errors(STDERR_FILENO);
  log_line(LogLevel::kWarn, "%s has %d of %s", "{} %s {0}", 7, "100%");
  EXPECT_EQ(errors.text(), "gpucap: {} %s {0} has 7 of 100%\n");
}

TEST_F(LogTest, EndlessTextIsCutAndStaysOneLine) {
  set_up_log(LogLevel::kWarn, "");
  Capture errors(STDERR_FILENO);
  log_line(LogLevel::kWarn, "%s", std::string(10000, 'x').c_str());
  log_line_rarely(LogLevel::kWarn, "%s", std::string(10000, 'y').c_str());
  const std::string text = errors.text();
  EXPECT_EQ(count_of(text, "\n"), 2);
  EXPECT_GT(text.size(), 1400u);
  EXPECT_LT(text.size(), 1600u);
}

TEST_F(LogTest, BurstIsCutOffAndTheNextLineSaysHowManyWereHeldBack) {
  set_up_log(LogLevel::kWarn, "");
  Capture errors(STDERR_FILENO);
  for (int i = 0; i < 1000; ++i) log_line_rarely(LogLevel::kWarn, "line %d;", i);
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  log_line_rarely(LogLevel::kWarn, "the next;");
  const std::string text = errors.text();
  const int shown = count_of(text, "line ");
  EXPECT_GE(shown, 5) << text;
  EXPECT_LE(shown, 10) << text;
  // Each line counts those before it that were not shown; together they account for all.
  uint64_t told = 0;
  const std::regex note("\\(([0-9]+) lines like it were not shown\\)");
  for (std::sregex_iterator at(text.begin(), text.end(), note), end; at != end; ++at) told += std::stoull((*at)[1]);
  EXPECT_EQ(told, 1000u - static_cast<uint64_t>(shown)) << text;
  EXPECT_NE(text.find("the next; ("), std::string::npos) << text;
}

TEST_F(LogTest, LinesBelowTheLevelCostNoTokens) {
  set_up_log(LogLevel::kWarn, "");
  Capture errors(STDERR_FILENO);
  for (int i = 0; i < 1000; ++i) log_line_rarely(LogLevel::kDebug, "detail");
  log_line_rarely(LogLevel::kWarn, "a warning");
  EXPECT_EQ(errors.text(), "gpucap: a warning\n");
}

TEST_F(LogTest, PlainLinesAreNotHeldBack) {
  set_up_log(LogLevel::kWarn, "");
  Capture errors(STDERR_FILENO);
  for (int i = 0; i < 50; ++i) log_line(LogLevel::kWarn, "line");
  EXPECT_EQ(count_of(errors.text(), "line"), 50);
}

TEST_F(LogTest, ErrnoIsKept) {
  const std::string file = folder_ + "/no/such/folder/log";
  set_up_log(LogLevel::kWarn, file.c_str());
  Capture errors(STDERR_FILENO);
  errno = EDOM;
  log_line(LogLevel::kWarn, "first");
  EXPECT_EQ(errno, EDOM);
  for (int i = 0; i < 10; ++i) log_line_rarely(LogLevel::kWarn, "second");
  EXPECT_EQ(errno, EDOM);
}

// Where stderr is a pipe whose reader went away, a line must neither kill the program nor leave a signal behind.
TEST_F(LogTest, ClosedPipeKillsNobodyAndLeavesNoSignalPending) {
  set_up_log(LogLevel::kWarn, "");
  signal(SIGPIPE, SIG_DFL);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int kept = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  close(ends[0]);
  sigset_t before, after, pending;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  errno = EDOM;
  log_line(LogLevel::kWarn, "into the void");
  const int error_number = errno;
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  sigpending(&pending);
  dup2(kept, STDERR_FILENO);
  EXPECT_EQ(error_number, EDOM);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
  for (int s = 1; s < NSIG; ++s) EXPECT_EQ(sigismember(&before, s), sigismember(&after, s)) << s;
}

// A SIGPIPE that the program itself has blocked and not yet seen stays the program's.
TEST_F(LogTest, PendingSignalOfTheProgramIsNotEaten) {
  set_up_log(LogLevel::kWarn, "");
  sigset_t pipe_signal, pending;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
  raise(SIGPIPE);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int kept = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  close(ends[0]);
  log_line(LogLevel::kWarn, "into the void");
  sigpending(&pending);
  dup2(kept, STDERR_FILENO);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 1);
}

TEST_F(LogTest, FullPipeLosesTheLineAndNeverBlocks) {
  set_up_log(LogLevel::kWarn, "");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  const char block[4096] = {};
  while (write(ends[1], block, sizeof(block)) > 0) {
  }
  fcntl(ends[1], F_SETFL, 0);
  const int kept = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  alarm(20);  // a blocked write ends here, by the signal
  for (int i = 0; i < 100; ++i) log_line(LogLevel::kWarn, "does not fit");
  alarm(0);
  dup2(kept, STDERR_FILENO);
  EXPECT_EQ(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0) << "the descriptor's flags are the program's";
}

// The last free page of a pipe is seen free by all threads at once; only one can have it.
TEST_F(LogTest, PipeThatFillsUpUnderManyThreadsNeverBlocks) {
  set_up_log(LogLevel::kWarn, "");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int kept = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  alarm(20);
  const std::string text(600, 'x');
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) log_line(LogLevel::kWarn, "%s", text.c_str());
    });
  for (std::thread& thread : threads) thread.join();
  alarm(0);
  dup2(kept, STDERR_FILENO);
}

TEST_F(LogTest, ClosedStderrIsNoTrouble) {
  set_up_log(LogLevel::kWarn, "");
  const int kept = dup(STDERR_FILENO);
  close(STDERR_FILENO);
  errno = EDOM;
  log_line(LogLevel::kWarn, "to nobody");
  const int error_number = errno;
  dup2(kept, STDERR_FILENO);
  EXPECT_EQ(error_number, EDOM);
}

TEST_F(LogTest, FileGetsTimePidAndLevelAndNothingGoesToStderr) {
  const std::string file = folder_ + "/log";
  set_up_log(LogLevel::kInfo, file.c_str());
  Capture errors(STDERR_FILENO);
  say_on_every_level();
  EXPECT_EQ(errors.text(), "");
  const std::string text = content_of(file);
  EXPECT_EQ(count_of(text, "\n"), 3) << text;
  const std::regex line("^20[0-9-]{8}T[0-9:]{8}\\.[0-9]{3}Z " + std::to_string(getpid()) + " error: an error\n");
  EXPECT_TRUE(std::regex_search(text, line)) << text;
}

TEST_F(LogTest, FileIsAppendedToAndOpenOnlyForALine) {
  const std::string file = folder_ + "/log", moved = folder_ + "/log.1";
  set_up_log(LogLevel::kWarn, file.c_str());
  const int next_before = dup(0);
  close(next_before);
  log_line(LogLevel::kWarn, "before");
  const int next_after = dup(0);
  close(next_after);
  EXPECT_EQ(next_after, next_before) << "no descriptor is kept";
  std::filesystem::rename(file, moved);  // as logrotate does
  log_line(LogLevel::kWarn, "after");
  log_line(LogLevel::kWarn, "at last");
  EXPECT_EQ(count_of(content_of(moved), "\n"), 1);
  EXPECT_EQ(count_of(content_of(file), "\n"), 2);
}

TEST_F(LogTest, FileThatCannotBeOpenedFallsBackToStderr) {
  const std::string file = folder_ + "/no/such/folder/log";
  set_up_log(LogLevel::kWarn, file.c_str());
  Capture errors(STDERR_FILENO);
  log_line(LogLevel::kWarn, "still said");
  EXPECT_NE(errors.text().find("still said\n"), std::string::npos);
}

TEST_F(LogTest, FifoWithoutAReaderDoesNotBlock) {
  const std::string fifo = folder_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  set_up_log(LogLevel::kWarn, fifo.c_str());
  Capture errors(STDERR_FILENO);
  alarm(20);
  log_line(LogLevel::kWarn, "still said");
  alarm(0);
  EXPECT_NE(errors.text().find("still said\n"), std::string::npos);
}

TEST_F(LogTest, LinesOfManyThreadsStayWhole) {
  const std::string file = folder_ + "/log";
  set_up_log(LogLevel::kWarn, file.c_str());
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 200; ++i) log_line(LogLevel::kWarn, "a whole line from here to there");
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count_of(content_of(file), "a whole line from here to there\n"), 1600);
}

}  // namespace
}  // namespace gpucap
