// The launcher's pure parts: what a loader's trace means, names of cards, the choice of one, new limits, and the line
// at the end.
#include <gtest/gtest.h>

#include "tools/gpucap/gpu_name.h"
#include "tools/gpucap/probe_child.h"
#include "tools/gpucap/room.h"
#include "tools/gpucap/set_limit.h"
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

TEST(RunSummary, TellsTwoCardsApartThatTwoProcessesNumberAlike) {
  Segment a = segment_of("a", kGiB, 0);
  Segment b = segment_of("b", 2 * kGiB, 1);
  a.snapshot.devices[0].gauges.uuid[0] = 0xab;
  b.snapshot.devices[0].gauges.uuid[0] = 0xcd;
  const std::string text = summary_of({a, b});
  EXPECT_NE(text.find("peak 1.00 GiB of 4.00 GiB on GPU 0 (GPU-ab000000)"), std::string::npos) << text;
  EXPECT_NE(text.find(", 2.00 GiB of 4.00 GiB on GPU 0 (GPU-cd000000), 1 refusal"), std::string::npos) << text;
}

TEST(RunSummary, SuggestsNothingWhereNothingWasObserved) {
  Segment segment = segment_of("a", kGiB + 1, 0);
  segment.snapshot.on_limit = GPUCAP_ON_LIMIT_OBSERVE;
  EXPECT_EQ(summary_of({segment}), "python train.py: peak 1.00 GiB of 4.00 GiB on GPU 0, 0 refusals");
  segment.snapshot.devices[0].gauges.observed_count = 1;
  EXPECT_NE(summary_of({segment}).find("let everything through: 1025M on GPU 0"), std::string::npos);
}

TEST(GpuNames, AreAnyANumberOrTheBeginningOfAUuid) {
  GpuName name;
  ASSERT_TRUE(parse_gpu_name("any", true, &name));
  EXPECT_TRUE(name.matches(7, "GPU-1234"));
  EXPECT_FALSE(parse_gpu_name("any", false, &name));
  ASSERT_TRUE(parse_gpu_name("12", true, &name));
  EXPECT_TRUE(name.matches(12, ""));
  EXPECT_FALSE(name.matches(1, ""));
  ASSERT_TRUE(parse_gpu_name("gpu-AB", true, &name));
  EXPECT_TRUE(name.matches(0, "GPU-abcd"));
  EXPECT_TRUE(name.matches(0, "MIG-abcd")) << "the digits decide";
  EXPECT_FALSE(name.matches(0, "GPU-bcd"));
  for (const char* text : {"-1", "x", "GPU-", "GPU-xyz", "1x", "99999", "abcd"}) {
    EXPECT_FALSE(parse_gpu_name(text, true, &name)) << text;
  }
}

RoomOffer offer_of(uint64_t free_bytes, uint64_t needed_bytes, uint32_t ordinal = 0) {
  RoomOffer offer;
  offer.card.ordinal = ordinal;
  offer.card.total_bytes = 16 * kGiB;
  offer.card.free_bytes = free_bytes;
  offer.needed_bytes = needed_bytes;
  return offer;
}

TEST(Offers, TheRoomiestThatFitsIsTakenAndOfEqualOnesTheFirst) {
  EXPECT_EQ(best_offer({offer_of(3 * kGiB, 4 * kGiB)}), nullptr);
  const std::vector<RoomOffer> offers = {offer_of(5 * kGiB, kGiB, 0), offer_of(9 * kGiB, kGiB, 1),
                                         offer_of(9 * kGiB, kGiB, 2)};
  EXPECT_EQ(best_offer(offers), &offers[1]);
}

TEST(Offers, AreBoundedByTheGroup) {
  RoomOffer offer = offer_of(9 * kGiB, 4 * kGiB);
  offer.group_limit_bytes = 8 * kGiB;
  offer.group_used_bytes = 4 * kGiB;
  EXPECT_TRUE(offer.fits());
  offer.group_used_bytes += 1;
  EXPECT_FALSE(offer.fits());
  EXPECT_FALSE(offer.never_fits());
  offer.group_used_bytes = 9 * kGiB;  // after the limit was made smaller
  EXPECT_EQ(offer.free_bytes(), 0u);
  offer.group_limit_bytes = 4 * kGiB - 1;
  EXPECT_TRUE(offer.never_fits());
}

TEST(NewLimits, HoldForTheCardsThatTheyName) {
  NewLimit limit;
  ASSERT_FALSE(limit.parse("50%", ""));
  EXPECT_EQ(limit.for_device(3, "GPU-aa", 8 * kGiB), 4 * kGiB);
  ASSERT_FALSE(limit.parse("0=1G,GPU-bb00=2G", ""));
  EXPECT_EQ(limit.for_device(0, "GPU-aa00", 0), kGiB);
  EXPECT_EQ(limit.for_device(1, "GPU-bb00", 0), 2 * kGiB);
  EXPECT_EQ(limit.for_device(1, "GPU-cc00", 0), std::nullopt);
  ASSERT_FALSE(limit.parse("none", "1"));
  EXPECT_EQ(limit.for_device(1, "", 0), core::kNoLimit);
  EXPECT_EQ(limit.for_device(0, "", 0), std::nullopt);
  EXPECT_TRUE(limit.parse("0=1G", "0"));
  EXPECT_TRUE(limit.parse(" ", ""));
}

}  // namespace
}  // namespace gpucap::tools
