// When the process object lives and when it stays out of the way: before the driver is initialised, when disabled, and
// in forked children.
#include "shim/process/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "shim/process/log.h"
#include "shim/process/quota.h"
#include "tests/process/capture.h"
#include "tests/process/fake_card.h"

namespace gpucap {
namespace {

using test::FakeCard;
using test::kGiB;

class ProcessTest : public test::ProcessCase {
 protected:
  std::filesystem::path segments() const { return folder_ + "/segments"; }
  // The state word of the only segment, read from the file.
  uint32_t state() const {
    gpucap_header header{};
    for (const auto& entry : std::filesystem::directory_iterator(segments())) {
      std::ifstream file(entry.path(), std::ios::binary);
      file.read(reinterpret_cast<char*>(&header), sizeof(header));
    }
    return header.state;
  }
  // What `body` answers in a child made by `clone`; the child ends without destructors.
  template <class Body>
  static int in_child(Body body, bool raw_clone) {
    const pid_t child =
        raw_clone ? static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr)) : fork();
    if (child == 0) _exit(body());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
};

TEST_F(ProcessTest, NothingLivesBeforeThePartsAreInstalled) { EXPECT_EQ(Process::get(), nullptr); }

TEST_F(ProcessTest, StartsOnlyOnceTheDriverIsInitialised) {
  FakeCard::driver_initialised = false;
  Process::install(test::fake_parts());
  setenv("GPUCAP_LIMIT", "4G", 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Process::get(), nullptr);
  EXPECT_EQ(FakeCard::enumerated, 3) << "asked again each time";
  setenv("GPUCAP_LIMIT", "2G", 1);  // the environment is read at the start, not before
  FakeCard::driver_initialised = true;
  Process* process = Process::get();
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(Process::get(), process);
  EXPECT_EQ(FakeCard::enumerated, 4) << "and never after";
  EXPECT_EQ(process->device_count(), 2);
  EXPECT_EQ(process->device(0)->ledger.limit(), 2 * kGiB);
  EXPECT_EQ(process->device(2), nullptr);
  EXPECT_EQ(process->device(-1), nullptr);
}

TEST_F(ProcessTest, StartingMakesNoFileAndLooksAtNothing) {
  start("4G");
  EXPECT_FALSE(std::filesystem::exists(segments()));
  EXPECT_EQ(FakeCard::opened, 0);
  EXPECT_EQ(FakeCard::looks, 0);
}

TEST_F(ProcessTest, ErrnoIsKeptWhileStartingAndActivating) {
  errno = EDOM;
  Process& process = start("4G");
  EXPECT_EQ(errno, EDOM);
  process.activate(*process.device(0));
  EXPECT_EQ(errno, EDOM);
}

TEST_F(ProcessTest, DisabledIsInertForGood) {
  setenv("GPUCAP_DISABLE", "1", 1);
  setenv("GPUCAP_LIMIT", "abc", 1);
  test::Capture errors(STDERR_FILENO);
  Process::install(test::fake_parts());
  EXPECT_EQ(Process::get(), nullptr);
  unsetenv("GPUCAP_DISABLE");
  EXPECT_EQ(Process::get(), nullptr);
  EXPECT_EQ(FakeCard::enumerated, 1);
  Process::at_exit();
  EXPECT_EQ(errors.text(), "");
  EXPECT_FALSE(std::filesystem::exists(segments()));
}

TEST_F(ProcessTest, ALimitThatCannotBeReadIsSaidAtOnceAndLeavesNothing) {
  test::Capture errors(STDERR_FILENO);
  Process& process = start("lots");
  const std::string text = errors.text();
  EXPECT_EQ(test::count_of(text, "\n"), 1) << text;
  EXPECT_NE(text.find("gpucap: GPUCAP_LIMIT='lots' is not a size"), std::string::npos) << text;
  EXPECT_TRUE(process.config().refuse_everything);
  EXPECT_EQ(process.device(0)->ledger.limit(), 0u);
  EXPECT_EQ(reserve(process, *process.device(0), 1), Verdict::kRefused);
}

TEST_F(ProcessTest, ALimitForADeviceThatIsNotThereIsSaid) {
  test::Capture errors(STDERR_FILENO);
  start("0=4G,5=2G");
  const std::string text = errors.text();
  EXPECT_EQ(text, "gpucap: GPUCAP_LIMIT names device 5, but this process sees 2 device(s), numbered from 0\n");
}

TEST_F(ProcessTest, LimitsGoToTheDevicesThatTheyName) {
  Process& process = start("0=25%,GPU-a1000000=1G");
  EXPECT_EQ(process.device(0)->ledger.limit(), 4 * kGiB);
  EXPECT_EQ(process.device(1)->ledger.limit(), kGiB);
}

TEST_F(ProcessTest, EndIsMarkedAtExit) {
  Process& process = start("4G");
  Process::at_exit();  // before there is anything to mark
  process.activate(*process.device(0));
  EXPECT_EQ(state(), static_cast<uint32_t>(GPUCAP_STATE_LIVE));
  Process::at_exit();
  EXPECT_EQ(state(), static_cast<uint32_t>(GPUCAP_STATE_ENDED));
  EXPECT_EQ(Process::get(), &process) << "destructors that run later may still use CUDA";
  ASSERT_EQ(reserve(process, *process.device(0), kGiB), Verdict::kGranted);
  FakeCard::truth_bytes = kGiB;
  settle(*process.device(0), GPUCAP_KIND_LINEAR, kGiB, kGiB);
  EXPECT_EQ(reserve(process, *process.device(0), 4 * kGiB), Verdict::kRefused) << "and the cap holds to the end";
}

class ForkedChild : public ProcessTest, public testing::WithParamInterface<bool> {};

TEST_P(ForkedChild, IsInertAndEndsNothing) {
  Process& process = start("4G");
  process.activate(*process.device(0));
  const bool raw = GetParam();
  EXPECT_EQ(in_child([] { return Process::get() == nullptr ? 7 : 8; }, raw), 7);
  EXPECT_EQ(in_child(
                [&] {
                  Process::at_exit();
                  return 7;
                },
                raw),
            7);
  EXPECT_EQ(state(), static_cast<uint32_t>(GPUCAP_STATE_LIVE)) << "the parent is still there";
  EXPECT_EQ(Process::get(), &process);
  ASSERT_EQ(reserve(process, *process.device(0), kGiB), Verdict::kGranted) << "and goes on";
}

TEST_P(ForkedChild, OfAChildIsInertToo) {
  start("4G");
  const bool raw = GetParam();
  EXPECT_EQ(in_child([raw] { return in_child([] { return Process::get() == nullptr ? 7 : 8; }, raw); }, raw), 7);
}

TEST_P(ForkedChild, ForkedBeforeTheFirstUseStartsByItself) {
  FakeCard::driver_initialised = false;
  Process::install(test::fake_parts());
  EXPECT_EQ(Process::get(), nullptr);
  setenv("GPUCAP_LIMIT", "2G", 1);
  const auto use_it = [] {
    FakeCard::driver_initialised = true;
    Process* process = Process::get();
    if (process == nullptr) return 1;
    Device& device = *process->device(0);
    if (reserve(*process, device, 3 * kGiB) != Verdict::kRefused) return 2;
    return reserve(*process, device, kGiB) == Verdict::kGranted ? 7 : 3;
  };
  EXPECT_EQ(in_child(use_it, GetParam()), 7);
  EXPECT_EQ(in_child(use_it, GetParam()), 7) << "each worker anew";
  EXPECT_EQ(Process::get(), nullptr) << "what the workers did is not the parent's";
}

INSTANTIATE_TEST_SUITE_P(By, ForkedChild, testing::Values(false, true),
                         [](const auto& test) { return std::string(test.param ? "RawClone" : "Fork"); });

// A thread that forks in the middle of another's start: the child must neither wait for it nor take it over.
TEST_F(ProcessTest, ForkedInTheMiddleOfAStartDoesNotWait) {
  static int child_answer = -1;
  Parts parts = test::fake_parts();
  parts.enumerate = [](Device* devices, int most) {
    child_answer = in_child(
        [] {
          alarm(10);
          return Process::get() == nullptr ? 7 : 8;
        },
        false);
    return FakeCard::enumerate(devices, most);
  };
  Process::install(parts);
  EXPECT_NE(Process::get(), nullptr);
  EXPECT_EQ(child_answer, 7);
}

}  // namespace
}  // namespace gpucap
