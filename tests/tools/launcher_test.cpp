// The launcher's pure parts: what a loader's trace means, and the line at the end.
#include <gtest/gtest.h>

#include "tools/gpucap/probe_child.h"
#include "tools/gpucap/summary.h"

namespace gpucap::tools {
namespace {

constexpr const char* kLibrary = "/opt/lib/libgpucap.so";

TEST(JudgeTrace, AListedLibraryIsLoaded) {
  EXPECT_TRUE(
      judge_trace("\tlinux-vdso.so.1 (0x1)\n\t/opt/lib/libgpucap.so (0x7f)\n\tlibc.so.6 => /lib/libc.so.6 (0x7e)\n", "",
                  kLibrary)
          .loaded);
}

TEST(JudgeTrace, AnUnlistedOneIsNot) {
  EXPECT_FALSE(judge_trace("\tlibc.so.6 => /lib/libc.so.6 (0x7e)\n", "", kLibrary).loaded);
  EXPECT_FALSE(judge_trace("", "", kLibrary).loaded);
  EXPECT_FALSE(judge_trace("\t/other/opt/lib/libgpucap.so.old (0x7e)\n", "", kLibrary).loaded);
}

TEST(JudgeTrace, TheLoadersReasonIsTold) {
  const ProbeAnswer answer = judge_trace(
      "",
      "ERROR: ld.so: object '/opt/lib/libgpucap.so' from LD_PRELOAD cannot be preloaded (file too short): ignored.\n",
      kLibrary);
  EXPECT_FALSE(answer.loaded);
  EXPECT_EQ(answer.reason, "file too short");
}

TEST(JudgeTrace, AnotherLibrarysTroubleIsNotOurs) {
  EXPECT_TRUE(
      judge_trace("\t/opt/lib/libgpucap.so (0x7f)\n\tlibmissing.so => not found\n",
                  "ERROR: ld.so: object 'jemalloc.so' from LD_PRELOAD cannot be preloaded (cannot open): ignored.\n",
                  kLibrary)
          .loaded);
}

TEST(JudgeTrace, AMissingVersionThatItNeedsIsTold) {
  const ProbeAnswer answer = judge_trace(
      "\t/opt/lib/libgpucap.so (0x7f)\n",
      "./prog: /lib/libc.so.6: version `GLIBC_2.99' not found (required by /opt/lib/libgpucap.so)\n", kLibrary);
  EXPECT_FALSE(answer.loaded);
  EXPECT_NE(answer.reason.find("GLIBC_2.99"), std::string::npos);
}

Segment segment_of(const std::string& path, uint64_t peak_bytes, uint64_t refused, uint32_t ordinal = 0) {
  Segment segment;
  segment.path = path;
  segment.snapshot.run_id = "run";
  wire::DeviceSnapshot device;
  device.gauges.ordinal = ordinal;
  device.gauges.active = 1;
  device.gauges.peak_bytes = peak_bytes;
  device.gauges.limit_bytes = uint64_t{4} << 30;
  device.gauges.refused_count = refused;
  segment.snapshot.devices.push_back(device);
  return segment;
}

std::string summary_of(std::initializer_list<Segment> segments) {
  RunSummary summary("run");
  Scan scan;
  scan.segments = segments;
  summary.note(scan);
  return summary.text("python train.py");
}

constexpr uint64_t kGiB = uint64_t{1} << 30;

TEST(RunSummary, TellsPeakCapAndRefusals) {
  EXPECT_EQ(summary_of({segment_of("a", 4198330401, 3)}),
            "python train.py: peak 3.91 GiB of 4.00 GiB on GPU 0, 3 refusals");
  EXPECT_EQ(summary_of({segment_of("a", kGiB, 1)}), "python train.py: peak 1.00 GiB of 4.00 GiB on GPU 0, 1 refusal");
}

TEST(RunSummary, SaysWhenThereWasNoCapOrNoUse) {
  Segment watched = segment_of("a", kGiB, 0);
  watched.snapshot.devices[0].gauges.limit_bytes = GPUCAP_WIRE_NO_LIMIT;
  EXPECT_EQ(summary_of({watched}), "python train.py: peak 1.00 GiB on GPU 0 (no cap), 0 refusals");
  EXPECT_EQ(summary_of({}), "python train.py: no CUDA use was seen");
  Segment idle = segment_of("a", 0, 0);
  idle.snapshot.devices[0].gauges.active = 0;
  EXPECT_EQ(summary_of({idle}), "python train.py: no GPU memory was used");
}

TEST(RunSummary, LeavesOtherRunsOut) {
  Segment other = segment_of("b", 3 * kGiB, 9);
  other.snapshot.run_id = "another";
  EXPECT_EQ(summary_of({segment_of("a", kGiB, 0), other}),
            "python train.py: peak 1.00 GiB of 4.00 GiB on GPU 0, 0 refusals");
}

TEST(RunSummary, TakesTheLargestOfSeveralProcessesAndAllTheirRefusals) {
  EXPECT_EQ(summary_of({segment_of("a", kGiB, 1), segment_of("b", 2 * kGiB, 2), segment_of("c", kGiB, 0, 1)}),
            "python train.py: peak 2.00 GiB of 4.00 GiB on GPU 0, 1.00 GiB of 4.00 GiB on GPU 1, 3 refusals (3 "
            "processes: the "
            "largest peak, all refusals)");
}

TEST(RunSummary, RemembersAProcessThatWasSweptMeanwhile) {
  RunSummary summary("run");
  Scan first;
  first.segments = {segment_of("a", 2 * kGiB, 0)};
  summary.note(first);
  summary.note({});
  EXPECT_EQ(summary.text("x"), "x: peak 2.00 GiB of 4.00 GiB on GPU 0, 0 refusals");
}

TEST(RunSummary, CutsALongCommand) {
  RunSummary summary("run");
  EXPECT_EQ(summary.text(std::string(100, 'x')), std::string(59, 'x') + "~: no CUDA use was seen");
}

}  // namespace
}  // namespace gpucap::tools
