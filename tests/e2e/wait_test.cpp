// GPUCAP_ON_LIMIT=wait: who asks for more than the group's or the card's budget stands in line.
#include <fstream>
#include <iterator>

#include "tests/e2e/told.h"

namespace gpucap::e2e {
namespace {

class WaitTest : public World {
 protected:
  Environment member(const std::string& on_limit = "wait", const std::string& limit = "4G") {
    Environment environment = capped("");
    environment["GPUCAP_GROUP"] = "line";
    environment["GPUCAP_GROUP_LIMIT"] = limit;
    environment["GPUCAP_ON_LIMIT"] = on_limit;
    return environment;
  }
  const gpucap_device& gauges(pid_t pid) {
    snapshot_ = segment(pid);
    EXPECT_FALSE(snapshot_.devices.empty());
    return snapshot_.devices[0].gauges;
  }
  // A slow machine comes to the line late.
  bool stands_in_line(pid_t pid) {
    for (int i = 0; i < 200 && gauges(pid).waiting_count == 0; ++i) usleep(50'000);
    return gauges(pid).waiting_count == 1;
  }
  static long cpu_ticks(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    std::istringstream fields(text.substr(text.rfind(')') + 2));
    std::string skipped;
    for (int i = 3; i < 14; ++i) fields >> skipped;
    long user = 0, system = 0;
    fields >> user >> system;
    return user + system;
  }
  wire::SegmentSnapshot snapshot_;
};

TEST_F(WaitTest, BlocksUntilItFitsAndShowsIt) {
  Told holder(member()), waiter(member());
  ASSERT_EQ(holder.does("start"), 0);
  ASSERT_EQ(holder.take("alloc", 2 * kGiB), 0);
  ASSERT_EQ(waiter.does("start"), 0);
  waiter.say("take alloc 2147483648");
  EXPECT_FALSE(waiter.answers_within(300));
  EXPECT_EQ(gauges(waiter.pid).waiting_count, 1u);
  EXPECT_EQ(gauges(waiter.pid).waiting_bytes, 2 * kGiB);
  EXPECT_GT(gauges(waiter.pid).waiting_monotonic_ns, 0u);
  const long before = cpu_ticks(waiter.pid);
  EXPECT_FALSE(waiter.answers_within(1000));
  EXPECT_LE(cpu_ticks(waiter.pid) - before, 10) << "of 100 in a second";
  ASSERT_EQ(holder.does("give"), 0);
  EXPECT_EQ(waiter.answer(), 0);
  EXPECT_NE(waiter.err.find("waiting for 2.00 GiB"), std::string::npos) << waiter.err;
  EXPECT_NE(waiter.err.find("group 'line' of 4.00 GiB"), std::string::npos) << waiter.err;
  EXPECT_EQ(gauges(waiter.pid).waiting_count, 0u);
  EXPECT_EQ(gauges(waiter.pid).waiting_bytes, 0u);
  EXPECT_EQ(gauges(waiter.pid).waits_count, 1u);
  EXPECT_EQ(gauges(waiter.pid).refused_count, 0u);
  EXPECT_LE(truth_.used(0), 4 * kGiB);
}

TEST_F(WaitTest, AKilledHolderFreesTheWay) {
  Told holder(member()), waiter(member());
  ASSERT_EQ(holder.does("start"), 0);
  ASSERT_EQ(holder.take("alloc", 2 * kGiB), 0);
  ASSERT_EQ(waiter.does("start"), 0);
  waiter.say("take alloc 2147483648");
  EXPECT_FALSE(waiter.answers_within(200));
  kill(holder.pid, SIGKILL);
  EXPECT_EQ(waiter.answer(), 0);
}

TEST_F(WaitTest, FirstComeFirstServed) {
  Told holder(member()), first(member()), second(member()), newcomer(member());
  for (Told* one : {&holder, &first, &second, &newcomer}) ASSERT_EQ(one->does("start"), 0);
  // 4 GiB less four contexts are 1.97 GiB.
  for (int i = 0; i < 3; ++i) ASSERT_EQ(holder.take("alloc", 600 * kMiB), 0);
  first.say("take alloc 1610612736");
  ASSERT_FALSE(first.answers_within(300));
  second.say("take alloc 314572800");
  ASSERT_FALSE(second.answers_within(300));
  ASSERT_EQ(holder.does("give"), 0);  // enough for the second, not for the first
  EXPECT_FALSE(second.answers_within(300)) << "overtook the first";
  newcomer.say("take alloc 1048576");
  EXPECT_FALSE(newcomer.answers_within(200)) << "overtook both";
  EXPECT_EQ(holder.take("alloc", 2 * kMiB), 0) << "whoever has memory already goes on";
  ASSERT_EQ(holder.does("give-all"), 0);
  EXPECT_EQ(first.answer(), 0);
  EXPECT_EQ(second.answer(), 0);
  EXPECT_EQ(newcomer.answer(), 0);
}

TEST_F(WaitTest, ADeadWaiterIsNotWaitedFor) {
  Told holder(member()), first(member()), second(member());
  for (Told* one : {&holder, &first, &second}) ASSERT_EQ(one->does("start"), 0);
  ASSERT_EQ(holder.take("alloc", 2 * kGiB), 0);
  first.say("take alloc 2147483648");
  ASSERT_FALSE(first.answers_within(200));
  second.say("take alloc 1073741824");
  ASSERT_FALSE(second.answers_within(200));
  kill(first.pid, SIGKILL);
  first.finish();
  ASSERT_EQ(holder.does("give"), 0);
  EXPECT_EQ(second.answer(), 0);
}

TEST_F(WaitTest, TheLongestTimeIsKept) {
  Told holder(member()), waiter(member("wait:300ms"));
  ASSERT_EQ(holder.does("start"), 0);
  ASSERT_EQ(holder.take("alloc", 2 * kGiB), 0);
  ASSERT_EQ(waiter.does("start"), 0);
  EXPECT_EQ(waiter.take("alloc", 2 * kGiB), 2);
  EXPECT_GE(waiter.milliseconds, 290);
  EXPECT_NE(waiter.err.find("refused"), std::string::npos) << waiter.err;
  EXPECT_EQ(gauges(waiter.pid).refused_count, 1u);
}

TEST_F(WaitTest, WhatCanNeverFitIsRefusedAtOnce) {
  Told waiter(member());
  ASSERT_EQ(waiter.does("start"), 0);
  EXPECT_EQ(waiter.take("alloc", 5 * kGiB), 2);
  EXPECT_LT(waiter.milliseconds, 5000);
  Environment own = member();
  own["GPUCAP_LIMIT"] = "1G";
  Told narrow(own);
  ASSERT_EQ(narrow.does("start"), 0);
  EXPECT_EQ(narrow.take("alloc", 2 * kGiB), 2) << "nobody else can make room under its own cap";
}

TEST_F(WaitTest, ASignalsHandlerEndsIt) {
  Told holder(member()), waiter(member());
  ASSERT_EQ(holder.does("start"), 0);
  ASSERT_EQ(holder.take("alloc", 2 * kGiB), 0);
  ASSERT_EQ(waiter.does("start"), 0);
  ASSERT_EQ(waiter.does("alarm 300"), 0);
  EXPECT_EQ(waiter.take("alloc", 2 * kGiB), 2);
  EXPECT_EQ(waiter.take("alloc", 2 * kGiB), 2) << "an allocator that tries again must not wait again";
  EXPECT_LT(waiter.milliseconds, 900);
}

TEST_F(WaitTest, ADeadlockEndsWithTheLastThatCame) {
  Told a(member()), b(member());
  ASSERT_EQ(a.does("start"), 0);
  ASSERT_EQ(b.does("start"), 0);
  ASSERT_EQ(a.take("alloc", 1400 * kMiB), 0);
  ASSERT_EQ(b.take("alloc", 1400 * kMiB), 0);
  a.say("take alloc 1073741824");
  ASSERT_FALSE(a.answers_within(200));
  b.say("take alloc 1073741824");
  EXPECT_EQ(b.answer(), 2);
  EXPECT_GE(b.milliseconds, 9000);
  EXPECT_NE(b.err.find("waiting was in vain"), std::string::npos) << b.err;
  EXPECT_FALSE(a.answers_within(200)) << "who came first goes on waiting";
  ASSERT_EQ(b.does("give"), 0);
  EXPECT_EQ(a.answer(), 0);
}

TEST_F(WaitTest, AFullCardIsWaitedForToo) {
  Told holder(capped(""));  // in no group: 16 GiB a card
  ASSERT_EQ(holder.does("start"), 0);
  ASSERT_EQ(holder.take("alloc", 14 * kGiB), 0);
  Environment environment = capped("");
  environment["GPUCAP_ON_LIMIT"] = "wait";
  Told waiter(environment);
  ASSERT_EQ(waiter.does("start"), 0);
  for (const char* way : {"alloc", "create", "async"}) {
    waiter.say("take " + std::string(way) + " 2147483648");
    EXPECT_FALSE(waiter.answers_within(300)) << way;
    EXPECT_TRUE(stands_in_line(waiter.pid)) << way;
    EXPECT_FALSE(waiter.answers_within(100)) << way;
    ASSERT_EQ(holder.does("give"), 0);
    EXPECT_EQ(waiter.answer(), 0) << way;
    ASSERT_EQ(waiter.does("give-all"), 0);
    ASSERT_EQ(holder.take("alloc", 14 * kGiB), 0);
  }
  EXPECT_NE(waiter.err.find("the card is full"), std::string::npos) << waiter.err;
}

}  // namespace
}  // namespace gpucap::e2e
