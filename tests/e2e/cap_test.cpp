// The cap, on every way of taking memory and every way of reaching the driver.
#include "tests/e2e/world.h"

namespace gpucap::e2e {
namespace {

class EveryWay : public World, public testing::WithParamInterface<const char*> {};

TEST_P(EveryWay, IsRefusedAtTheCapAndLeavesNothingBehind) {
  const std::string way = GetParam();
  Child child(client({"linked", "until-refused", way, std::to_string(100 * kMiB), "1000"}), capped("4G"));
  ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
  EXPECT_EQ(value_of(child.out, "result"), "2");
  EXPECT_EQ(value_of(child.out, "out_untouched"), "1");
  EXPECT_GT(number(child.out, "taken"), 15u);
  const fake::TruthFigures figures = truth(child.pid);
  EXPECT_LE(figures.peak, 4 * kGiB) << "not by one byte";
  EXPECT_LE(figures.bytes + figures.managed, 4 * kGiB);
  expect_true_figures(child.pid);
  child.out.clear();
  child.tell("\n");
  ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
  EXPECT_EQ(value_of(child.out, "failed_frees"), "0");
  EXPECT_EQ(value_of(child.out, "again"), "0");
  EXPECT_EQ(number(child.out, "after_free"), 4 * kGiB - kContext);
  EXPECT_EQ(truth(child.pid).bytes, kContext);
  EXPECT_LE(truth(child.pid).peak, 4 * kGiB);
  expect_true_figures(child.pid);
  EXPECT_EQ(child.finish(), 0);
}

// Many small ones share blocks of 2 MiB: nearly all of the cap can be used, and not more.
TEST_P(EveryWay, SmallPiecesToo) {
  const std::string way = GetParam();
  if (way.rfind("create", 0) == 0 || way.rfind("array", 0) == 0 || way == "mipmap") return;  // they come in granules
  Child child(client({"linked", "until-refused", way, "300000", "20000"}), capped("1G"));
  ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
  EXPECT_EQ(value_of(child.out, "result"), "2");
  EXPECT_GT(number(child.out, "taken") * 300000, (kGiB - kContext) * 8 / 10);
  EXPECT_LE(truth(child.pid).peak, kGiB);
  expect_true_figures(child.pid);
  child.out.clear();
  child.tell("\n");
  ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
  EXPECT_EQ(value_of(child.out, "again"), "0");
  expect_true_figures(child.pid);
}

INSTANTIATE_TEST_SUITE_P(Cap, EveryWay,
                         testing::Values("alloc", "pitch", "managed", "async", "async_ptsz", "async_freed_plainly",
                                         "pool", "pool_ptsz", "create", "create_unmap_release",
                                         "create_release_while_mapped", "create_retained", "array", "array3d",
                                         "mipmap"),
                         [](const auto& test) { return std::string(test.param); });

class EveryMode : public World, public testing::WithParamInterface<const char*> {};

TEST_P(EveryMode, IsCapped) {
  Child child(client({GetParam(), "until-refused", "alloc", std::to_string(512 * kMiB), "100"}), capped("4G"));
  ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
  EXPECT_EQ(value_of(child.out, "result"), "2");
  EXPECT_EQ(value_of(child.out, "taken"), "6");
  EXPECT_EQ(number(child.out, "before_total"), 4 * kGiB);
  EXPECT_EQ(number(child.out, "before_device_total"), 4 * kGiB);
  EXPECT_EQ(number(child.out, "before_free"), 4 * kGiB - kContext);
  EXPECT_EQ(number(child.out, "full_free"), 4 * kGiB - kContext - 6 * 512 * kMiB);
}
INSTANTIATE_TEST_SUITE_P(Cap, EveryMode, testing::Values("linked", "dlsym", "default", "next", "proc", "proc_v2"),
                         [](const auto& test) { return std::string(test.param); });

TEST_F(World, EightThreadsAtTheLimitNeverPassItAndEndAtNothing) {
  Child child(client({"linked", "threads", std::to_string(100 * kMiB), "alloc", "async", "create_release_while_mapped",
                      "pool"}),
              capped("2G"));
  ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
  EXPECT_EQ(value_of(child.out, "odd"), "0");
  EXPECT_GT(number(child.out, "granted"), 100u);
  EXPECT_GT(number(child.out, "refused"), 10u);
  EXPECT_LE(truth(child.pid).peak, 2 * kGiB);
  EXPECT_EQ(truth(child.pid).bytes, kContext);
  EXPECT_EQ(number(child.out, "after_free"), 2 * kGiB - kContext) << "a charge was left behind";
  expect_true_figures(child.pid);
}

TEST_F(World, WithoutALimitNothingIsRefusedAndAllIsCounted) {
  Child child(client({"linked", "until-refused", "alloc", std::to_string(100 * kMiB), "20"}), capped(""));
  ASSERT_TRUE(child.wait_for("READY")) << child.err;
  EXPECT_EQ(value_of(child.out, "taken"), "20");
  EXPECT_EQ(number(child.out, "before_total"), 16 * kGiB);
  EXPECT_EQ(child.err, "");
  expect_true_figures(child.pid);
  EXPECT_EQ(segment(child.pid).devices[0].gauges.limit_bytes, GPUCAP_WIRE_NO_LIMIT);
}

TEST_F(World, FullCardIsNotReportedAsOurs) {
  Child child(client({"linked", "until-refused", "alloc", std::to_string(512 * kMiB), "100"}), capped("100%"));
  ASSERT_TRUE(child.wait_for("READY")) << child.err;
  Child other(client({"linked", "until-refused", "alloc", std::to_string(512 * kMiB), "100"}), capped("100%"));
  ASSERT_TRUE(other.wait_for("context=")) << other.err;
  other.finish();
  EXPECT_NE(other.err.find("the card"), std::string::npos) << other.err;
  EXPECT_EQ(other.err.find("the cap of"), std::string::npos) << other.err;
}

TEST_F(World, RefusalIsOneLineThatSaysWhoWhatAndWhere) {
  Child child(client({"linked", "until-refused", "alloc", std::to_string(512 * kMiB), "100"}), capped("4G"));
  ASSERT_TRUE(child.wait_for("READY"));
  child.tell("\n");
  child.finish();
  EXPECT_EQ(
      child.err,
      "gpucap: refused cuMemAlloc_v2 of 512.00 MiB on GPU 0: the cap of 4.00 GiB has 3.51 GiB used (data 3.00 GiB, "
      "pools 0 B, driver 518.00 MiB), 506.00 MiB left [pid " +
          std::to_string(child.pid) + "]\n");
}

struct BadLimit {
  const char* text;
};
class BadLimits : public World, public testing::WithParamInterface<const char*> {};
TEST_P(BadLimits, RefuseEveryContextWithOneClearLine) {
  Child child(client({"linked", "until-refused", "alloc", "1048576", "5"}), capped(GetParam()));
  EXPECT_EQ(child.finish(), 0);
  EXPECT_EQ(value_of(child.out, "init"), "0");
  EXPECT_EQ(value_of(child.out, "context"), "1") << "CUDA_ERROR_INVALID_VALUE";
  EXPECT_NE(child.err.find("GPUCAP_LIMIT='" + std::string(GetParam())), std::string::npos) << child.err;
  EXPECT_NE(child.err.find("write for example 4G"), std::string::npos) << child.err;
}
INSTANTIATE_TEST_SUITE_P(Config, BadLimits, testing::Values("abc", "-1", "4", "99999999T", "0=4G,oops", "150%"));

TEST_F(World, ZeroRefusesTheContextWithOutOfMemory) {
  Child child(client({"linked", "until-refused", "alloc", "1048576", "5"}), capped("0"));
  child.finish();
  EXPECT_EQ(value_of(child.out, "context"), "2");
  EXPECT_EQ(truth(child.pid).peak, 0u) << "no need to make a context to know that it does not fit";
}

TEST_F(World, CapBelowOneContextGivesItBack) {
  Child child(client({"linked", "until-refused", "alloc", "1048576", "5"}), capped("300M"));
  child.finish();
  EXPECT_EQ(value_of(child.out, "context"), "2");
  EXPECT_NE(child.err.find("refused cuDevicePrimaryCtxRetain of 518.00 MiB"), std::string::npos) << child.err;
}

TEST_F(World, PercentIsOfThePhysicalCard) {
  Child child(client({"linked", "devices"}), capped("25%"));
  ASSERT_TRUE(child.wait_for("READY"));
  EXPECT_EQ(number(child.out, "total0"), 4 * kGiB);
}

TEST_F(World, DevicesHaveTheirOwnLimitsAndCharges) {
  Child child(client({"linked", "devices"}), capped("0=2G,1=3G"));
  ASSERT_TRUE(child.wait_for("READY")) << child.err;
  EXPECT_EQ(value_of(child.out, "count"), "2");
  EXPECT_EQ(number(child.out, "total0"), 2 * kGiB);
  EXPECT_EQ(number(child.out, "total1"), 3 * kGiB);
  EXPECT_EQ(truth(child.pid, 0).bytes, kContext + 100 * kMiB);
  EXPECT_EQ(truth(child.pid, 1).bytes, kContext + 64 * kMiB);
  expect_true_figures(child.pid, 0);
  expect_true_figures(child.pid, 1);
  child.out.clear();
  child.tell("\n");
  ASSERT_TRUE(child.wait_for("READY"));
  expect_true_figures(child.pid, 0);
  EXPECT_EQ(segment(child.pid).devices[0].gauges.linear_bytes, 0) << "freed while device 1 was current";
  EXPECT_EQ(segment(child.pid).devices[1].gauges.vmm_bytes, static_cast<int64_t>(64 * kMiB));
}

TEST_F(World, OrdinalsAreThoseThatTheProcessSees) {
  Environment environment = capped("0=3G");
  environment["CUDA_VISIBLE_DEVICES"] = "1";
  Child child(client({"linked", "devices"}), environment);
  ASSERT_TRUE(child.wait_for("READY")) << child.err;
  EXPECT_EQ(value_of(child.out, "count"), "1");
  EXPECT_EQ(number(child.out, "total0"), 3 * kGiB);
  EXPECT_EQ(truth(child.pid, 1).bytes, kContext + 164 * kMiB) << "the second card of the machine";
  const wire::SegmentSnapshot snapshot = segment(child.pid);
  ASSERT_EQ(snapshot.devices.size(), 1u);
  EXPECT_EQ(snapshot.devices[0].used_bytes(), kContext + 164 * kMiB) << "and NVML was asked about that one";
}

}  // namespace
}  // namespace gpucap::e2e
