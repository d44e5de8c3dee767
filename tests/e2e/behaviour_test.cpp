// The host program does not notice: answers, output, exit, fork, kill, and what is left.
#include "tests/e2e/world.h"

namespace gpucap::e2e {
namespace {

TEST_F(World, OddCallsAreAnsweredAsTheDriverAnswers) {
  Child without(client({"linked", "odd"}), bare());
  Child with(client({"linked", "odd"}), capped("8G"));
  ASSERT_TRUE(without.wait_for("READY")) << without.err;
  ASSERT_TRUE(with.wait_for("READY")) << with.err;
  EXPECT_EQ(with.out, without.out);
  expect_true_figures(with.pid);
  EXPECT_EQ(with.finish(), without.finish());
}

TEST_F(World, ContextsPoolsAndResetsTakeTheirChargesWithThem) {
  Child child(client({"linked", "lifetimes"}), capped("8G"));
  for (const char* step : {"two contexts", "second destroyed", "pool destroyed with a live block", "its block freed",
                           "primary reset", "primary again"}) {
    SCOPED_TRACE(step);
    child.out.clear();
    ASSERT_TRUE(child.wait_for("READY")) << child.err;
    expect_true_figures(child.pid);
    child.tell("\n");
  }
  EXPECT_EQ(child.finish(), 0);
  EXPECT_EQ(child.err, "");
}

TEST_F(World, ForkedChildGetsTheDriversAnswersAndLeavesTheParentsBooksAlone) {
  Child child(client({"linked", "forked"}), capped("4G"));
  ASSERT_TRUE(child.wait_for("READY")) << child.err;
  EXPECT_EQ(value_of(child.out, "child_alloc"), "3");
  EXPECT_EQ(value_of(child.out, "child_free"), "3");
  EXPECT_EQ(value_of(child.out, "child_info"), "3");
  EXPECT_EQ(value_of(child.out, "child_status"), "7");
  wire::Liveness liveness{};
  const wire::SegmentSnapshot snapshot = segment(child.pid, &liveness);
  EXPECT_EQ(snapshot.state, static_cast<uint32_t>(GPUCAP_STATE_LIVE))
      << "the child's exit must not end the parent's segment";
  EXPECT_EQ(liveness, wire::Liveness::kAlive);
  EXPECT_EQ(snapshot.devices[0].live_count, 1);
  expect_true_figures(child.pid);
}

TEST_F(World, CaptureDoesNotNoticeWhatGpucapAsks) {
  Child child(client({"linked", "capture"}), capped("4G"));
  ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
  for (const char* step : {"begin", "node", "node_free", "end"}) EXPECT_EQ(value_of(child.out, step), "0") << step;
  EXPECT_EQ(value_of(child.out, "result"), "2") << "and the cap holds meanwhile";
  EXPECT_LE(truth(child.pid).peak, 4 * kGiB);
}

TEST_F(World, EndedProcessSaysSo) {
  Child child(client({"linked", "until-refused", "alloc", "104857600", "3"}), capped("4G"));
  ASSERT_TRUE(child.wait_for("READY"));
  const pid_t pid = child.pid;
  EXPECT_EQ(child.finish(), 0);
  wire::Liveness liveness{};
  EXPECT_EQ(segment(pid, &liveness).state, static_cast<uint32_t>(GPUCAP_STATE_ENDED));
  EXPECT_EQ(liveness, wire::Liveness::kEnded);
}

TEST_F(World, KilledProcessIsSeenAsKilledWithItsPeak) {
  Child child(client({"linked", "until-refused", "alloc", "104857600", "3"}), capped("4G"));
  ASSERT_TRUE(child.wait_for("READY"));
  const pid_t pid = child.pid;
  kill(pid, SIGKILL);
  child.finish();
  wire::Liveness liveness{};
  const wire::SegmentSnapshot snapshot = segment(pid, &liveness);
  EXPECT_EQ(liveness, wire::Liveness::kKilled);
  EXPECT_EQ(snapshot.devices[0].gauges.peak_bytes, kContext + 3 * 104857600);
}

TEST_F(World, ProcessThatOnlyInitialisesLeavesNoFileAndNoContext) {
  Child child(client({"linked", "init-only"}), capped("4G"));
  ASSERT_TRUE(child.wait_for("READY"));
  EXPECT_EQ(segment(child.pid).devices.size(), 0u);
  EXPECT_EQ(truth(child.pid).peak, 0u);
  EXPECT_EQ(child.err, "");
}

TEST_F(World, DisabledLoadsAndDoesNothing) {
  Environment environment = capped("abc");
  environment["GPUCAP_DISABLE"] = "1";
  Child child(client({"linked", "until-refused", "alloc", "104857600", "60"}), environment);
  ASSERT_TRUE(child.wait_for("READY"));
  EXPECT_EQ(value_of(child.out, "taken"), "60");
  EXPECT_EQ(child.err, "");
  EXPECT_EQ(segment(child.pid).devices.size(), 0u);
}

TEST_F(World, WithoutAFolderForFiguresTheCapStillHolds) {
  Environment environment = capped("4G");
  environment["GPUCAP_DIR"] = "/proc/no/such/folder";
  Child child(client({"linked", "until-refused", "alloc", "104857600", "100"}), environment);
  ASSERT_TRUE(child.wait_for("READY"));
  EXPECT_EQ(value_of(child.out, "result"), "2");
  EXPECT_LE(truth(child.pid).peak, 4 * kGiB);
  EXPECT_NE(child.err.find("the cap holds"), std::string::npos) << child.err;
}

TEST_F(World, WithoutNvmlTheProgramRunsUnderItsCap) {
  Environment environment = capped("4G");
  environment["FAKE_NVML_FAIL_INIT"] = "1";
  Child child(client({"linked", "until-refused", "alloc", "104857600", "100"}), environment);
  ASSERT_TRUE(child.wait_for("READY"));
  EXPECT_EQ(value_of(child.out, "taken"), "40");
  EXPECT_NE(child.err.find("NVML has no figure"), std::string::npos) << child.err;
}

TEST_F(World, WithoutAPerProcessFigureContextsAreCountedByTheCardsGrowth) {
  Environment environment = capped("4G");
  environment["FAKE_NVML_NO_PROCESS_MEMORY"] = "1";
  Child child(client({"linked", "until-refused", "alloc", "104857600", "100"}), environment);
  ASSERT_TRUE(child.wait_for("READY")) << child.err;
  EXPECT_LE(truth(child.pid).peak, 4 * kGiB);
  EXPECT_EQ(value_of(child.out, "taken"), "35");
  EXPECT_EQ(segment(child.pid).devices[0].gauges.truth, static_cast<uint32_t>(GPUCAP_TRUTH_DEVICE_DIFF));
}

TEST_F(World, DriverThatFailsByItselfIsPassedOnAndUncharged) {
  Environment environment = capped("4G");
  environment["FAKE_CUDA_FAIL"] = "cuMemAlloc_v2:3=700";
  Child child(client({"linked", "until-refused", "alloc", "104857600", "100"}), environment);
  ASSERT_TRUE(child.wait_for("READY"));
  EXPECT_EQ(value_of(child.out, "result"), "700");
  EXPECT_EQ(value_of(child.out, "taken"), "2");
  expect_true_figures(child.pid);
}

TEST_F(World, FreeThatFailsKeepsTheCharge) {
  Environment environment = capped("4G");
  environment["FAKE_CUDA_FAIL"] = "cuMemFree_v2:1=700,cuMemFree_v2:5=700";
  Child child(client({"linked", "until-refused", "alloc", "3000", "8"}), environment);
  ASSERT_TRUE(child.wait_for("READY"));
  child.out.clear();
  child.tell("\n");
  ASSERT_TRUE(child.wait_for("READY"));
  EXPECT_EQ(value_of(child.out, "failed_frees"), "2");
  EXPECT_EQ(truth(child.pid).bytes, kContext + 2 * kMiB);
  expect_true_figures(child.pid);
}

TEST_F(World, OldDriverWithoutPoolsAndNewLookUpsIsCapped) {
  Environment environment = capped("4G");
  environment["LD_LIBRARY_PATH"] = std::string(FAKE_CUDA_FOLDER) + "/old:" + FAKE_CUDA_FOLDER;
  Child child({OLD_CLIENT_PROGRAM}, environment);
  child.finish();
  EXPECT_EQ(value_of(child.out, "pools"), "absent") << child.out << child.err;
  EXPECT_EQ(value_of(child.out, "result"), "2");
  EXPECT_LE(truth(child.pid).peak, 4 * kGiB);
}

class Quiet : public World, public testing::WithParamInterface<const char*> {};
TEST_P(Quiet, ProgramsWithoutCudaRunAsWithoutUs) {
  const std::vector<std::string> command = {"/bin/sh", "-c", GetParam()};
  Environment plain;
  Environment with = capped("4G");
  with.erase("LD_LIBRARY_PATH");
  Child a(command, plain), b(command, with);
  const int status_a = a.finish(), status_b = b.finish();
  EXPECT_EQ(status_b, status_a);
  EXPECT_EQ(b.out, a.out);
  EXPECT_EQ(b.err, a.err);
  EXPECT_NE(access((folder_ + "/segments").c_str(), F_OK), 0) << "no folder for a program that never used CUDA";
}
INSTANTIATE_TEST_SUITE_P(
    Programs, Quiet,
    testing::Values("true", "false", "exit 3", "echo hello; ls / | wc -l", "kill -9 $$", "cat /nonexistent",
                    "python3 -c 'import ctypes, sys; ctypes.CDLL(None).puts; sys.exit(4)'",
                    "python3 -c 'import ctypes; print(hasattr(ctypes.CDLL(None), \"cuInit\"))'",
                    "python3 -c 'import ctypes; print(hasattr(ctypes.CDLL(None), \"cudaMalloc\"))'"));

}  // namespace
}  // namespace gpucap::e2e
