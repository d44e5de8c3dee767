// One budget for many processes: what the members together hold never passes it, whoever dies leaves nothing behind,
// and everything is told in a line that a person can act on.
#include "tests/e2e/told.h"

namespace gpucap::e2e {
namespace {

class GroupTest : public World {
 protected:
  Environment member(const std::string& limit = "4G", const std::string& group = "team-a") {
    Environment environment = capped("");
    environment["GPUCAP_GROUP"] = group;
    if (!limit.empty()) environment["GPUCAP_GROUP_LIMIT"] = limit;
    return environment;
  }
  // What the fake machine says that all living processes hold.
  uint64_t held(int device = 0) { return truth_.used(device); }
  bool group_file_exists(const std::string& group = "team-a") {
    return access((folder_ + "/segments/" + group + ".gpucap-group").c_str(), F_OK) == 0;
  }
};

TEST_F(GroupTest, TwoTogetherStayBelowTheLimitToTheByte) {
  Told a(member()), b(member());
  ASSERT_EQ(a.does("start"), 0);
  ASSERT_EQ(b.does("start"), 0);
  int taken = 0;
  for (bool room = true; room;) {
    room = false;
    for (Told* one : {&a, &b}) {
      const int result = one->take("alloc", 64 * kMiB);
      if (result == 0) ++taken;
      if (result == 0) room = true;
      EXPECT_LE(held(), 4 * kGiB);
    }
  }
  EXPECT_EQ(taken, static_cast<int>((4 * kGiB - 2 * kContext) / (64 * kMiB)));
  const int last = b.take("alloc", 64 * kMiB);
  EXPECT_EQ(last, 2);
  EXPECT_NE(b.err.find("group 'team-a' of 4.00 GiB has 3.9"), std::string::npos) << b.err;
  EXPECT_NE(b.err.find("used by 2 processes, of which this one"), std::string::npos) << b.err;
  // What one gives back is there for the other at its next request.
  ASSERT_EQ(a.does("give"), 0);
  EXPECT_EQ(b.take("alloc", 64 * kMiB), 0);
}

TEST_F(GroupTest, EveryWayCounts) {
  for (const char* way : {"alloc", "async", "create", "array", "pitch"}) {
    const std::string group = std::string("ways-") + way;
    Told a(member("2G", group)), b(member("2G", group));
    ASSERT_EQ(a.does("start"), 0);
    ASSERT_EQ(b.does("start"), 0);
    const uint64_t before = held();
    int together = 0;
    for (bool room = true; room;) {
      room = a.take(way, 32 * kMiB) == 0;
      if (b.take(way, 32 * kMiB) == 0) room = true;
      EXPECT_LE(held() - before + 2 * kContext, 2 * kGiB) << way;
      ASSERT_LT(++together, 100) << way;
    }
    EXPECT_GT(held() - before, 2 * kGiB - 2 * kContext - 160 * kMiB) << way;
    a.finish();
    b.finish();
  }
}

TEST_F(GroupTest, OwnLimitHoldsBesideTheGroups) {
  Environment narrow = member("8G");
  narrow["GPUCAP_LIMIT"] = "1G";
  Told a(narrow);
  ASSERT_EQ(a.does("start"), 0);
  EXPECT_EQ(a.take("alloc", 600 * kMiB), 2);
  EXPECT_NE(a.err.find("the cap of 1.00 GiB"), std::string::npos) << a.err;
  EXPECT_EQ(a.take("alloc", 400 * kMiB), 0);
}

TEST_F(GroupTest, FirstLimitStandsAndTheOtherIsTold) {
  Told a(member("4G"));
  ASSERT_EQ(a.does("start"), 0);
  Told b(member("6G"));
  ASSERT_EQ(b.does("start"), 0);
  EXPECT_NE(b.err.find("group 'team-a' has a limit of 4.00 GiB on GPU 0 already: it stands"), std::string::npos)
      << b.err;
  EXPECT_EQ(b.take("alloc", 4 * kGiB), 2);
  Told c(member(""));  // names no limit: joins under the standing one
  ASSERT_EQ(c.does("start"), 0);
  EXPECT_EQ(c.take("alloc", 4 * kGiB), 2);
  EXPECT_EQ(a.err, "") << "the first has nothing to be told";
}

TEST_F(GroupTest, ANewcomersContextIsAskedForBeforeItIsMade) {
  Told a(member("3G"));
  ASSERT_EQ(a.does("start"), 0);
  ASSERT_EQ(a.take("alloc", 2300 * kMiB), 0);
  Told b(member("3G"));
  EXPECT_EQ(b.does("start"), 2);
  EXPECT_NE(b.err.find("refused cuDevicePrimaryCtxRetain of 518.00 MiB"), std::string::npos) << b.err;
  fake::TruthFigures figures;
  EXPECT_TRUE(!truth_.find(b.pid, 0, &figures) || figures.peak == 0) << "it was made, and undone";
}

TEST_F(GroupTest, TheSurfacesShowWhatTheGroupLeaves) {
  Told a(member()), b(member());
  ASSERT_EQ(a.does("start"), 0);
  ASSERT_EQ(b.does("start"), 0);
  ASSERT_EQ(a.take("alloc", kGiB), 0);
  ASSERT_EQ(b.does("info"), 0);
  EXPECT_EQ(number(b.out, "total"), 4 * kGiB);
  EXPECT_EQ(number(b.out, "free"), 3 * kGiB - 2 * kContext);
}

TEST_F(GroupTest, AKilledMembersShareIsFreeAtTheNextRequest) {
  for (int round = 0; round < 5; ++round) {
    Told a(member());
    ASSERT_EQ(a.does("start"), 0);
    {
      Told b(member());
      ASSERT_EQ(b.does("start"), 0);
      ASSERT_EQ(b.take("alloc", 2 * kGiB), 0);
      ASSERT_EQ(a.take("alloc", 2 * kGiB), 2);
      kill(b.pid, SIGKILL);
      b.finish();
    }
    EXPECT_EQ(a.take("alloc", 3 * kGiB), 0) << a.err;
    EXPECT_EQ(a.take("alloc", kGiB), 2);
    a.finish();
  }
}

TEST_F(GroupTest, NeitherForkNorClosedDescriptorsReleaseAShare) {
  Told a(member()), b(member());
  ASSERT_EQ(a.does("start"), 0);
  ASSERT_EQ(a.take("alloc", 2 * kGiB), 0);
  ASSERT_EQ(a.does("fork"), 7);
  ASSERT_EQ(b.does("start"), 0);
  EXPECT_EQ(b.take("alloc", 2 * kGiB), 2);
  ASSERT_EQ(a.does("close-all"), 0);  // the lock that says that it lives is gone
  EXPECT_EQ(b.take("alloc", 2 * kGiB), 2) << "it lives all the same";
  EXPECT_EQ(a.take("alloc", 100 * kMiB), 0) << "and takes its lock again";
  EXPECT_EQ(b.take("alloc", 2 * kGiB), 2);
}

TEST_F(GroupTest, TheFileGoesWhenTheLastMemberHasGone) {
  {
    Told a(member());
    ASSERT_EQ(a.does("start"), 0);
    EXPECT_TRUE(group_file_exists());
    ASSERT_EQ(a.take("alloc", kGiB), 0);
    EXPECT_EQ(a.finish(), 0);
  }
  // It ended holding memory, so its share was counted to the end; whoever comes next clears up.
  Told other(capped("4G"));
  ASSERT_EQ(other.does("start"), 0);
  EXPECT_FALSE(group_file_exists());
}

TEST_F(GroupTest, ANewFirstMemberBringsItsOwnLimit) {
  {
    Told a(member("4G"));
    ASSERT_EQ(a.does("start"), 0);
    kill(a.pid, SIGKILL);
    a.finish();
  }
  Told b(member("6G"));
  ASSERT_EQ(b.does("start"), 0);
  EXPECT_EQ(b.err, "");
  EXPECT_EQ(b.take("alloc", 5 * kGiB), 0);
}

TEST_F(GroupTest, DevicesAreKnownByUuid) {
  Environment swapped = member();
  swapped["CUDA_VISIBLE_DEVICES"] = "1,0";
  Environment plain = member();
  Told a(plain), b(swapped);
  ASSERT_EQ(a.does("start"), 0);
  ASSERT_EQ(b.does("start"), 0);  // its device 0 is the machine's device 1
  ASSERT_EQ(a.take("alloc", 3 * kGiB), 0);
  EXPECT_EQ(b.take("alloc", 2 * kGiB), 0) << "another card, another budget: " << b.err;
  Environment same = member();
  same["CUDA_VISIBLE_DEVICES"] = "1";
  Told c(same);
  ASSERT_EQ(c.does("start"), 0);
  EXPECT_EQ(c.take("alloc", 2 * kGiB), 2) << "the same card under another number";
}

TEST_F(GroupTest, WhatCannotBeKeptIsRefusedWithOneClearLine) {
  const struct {
    const char* group;
    const char* limit;
    const char* line;
  } cases[] = {
      {"../evil", "4G", "GPUCAP_GROUP='../evil' is not a group's name"},
      {"", "4G", "GPUCAP_GROUP_LIMIT='4G' without GPUCAP_GROUP limits nothing"},
      {"team", "4Q", "GPUCAP_GROUP_LIMIT='4Q'"},
  };
  for (const auto& one : cases) {
    Environment environment = member(one.limit, one.group);
    if (*one.group == '\0') environment.erase("GPUCAP_GROUP");
    Told a(environment);
    EXPECT_EQ(a.does("start"), 1) << one.group;
    EXPECT_NE(a.err.find(one.line), std::string::npos) << a.err;
  }
  // A file of that name that is none of ours.
  std::system(
      ("mkdir -p " + folder_ + "/segments && echo nonsense > " + folder_ + "/segments/odd.gpucap-group").c_str());
  Told a(member("4G", "odd"));
  EXPECT_EQ(a.does("start"), 1);
  EXPECT_NE(a.err.find("group 'odd' in " + folder_ + "/segments cannot be joined: its file is damaged"),
            std::string::npos)
      << a.err;
  EXPECT_EQ(held(), 0u);
}

TEST_F(GroupTest, MembersOfAnotherPidNamespaceCount) {
  if (std::system("unshare -rpf --mount-proc true 2>/dev/null") != 0) GTEST_SKIP() << "no PID namespaces here";
  Told a(member());
  ASSERT_EQ(a.does("start"), 0);
  Child inside({"unshare", "-rpf", "--mount-proc", TOLD_PROGRAM, "linked"}, member());
  inside.tell("start\ntake alloc 2147483648\n");
  ASSERT_TRUE(inside.wait_for("take 0")) << inside.out << inside.err;
  EXPECT_EQ(a.take("alloc", 2 * kGiB), 2);
  inside.tell("quit\n");
  inside.finish();
  EXPECT_EQ(a.take("alloc", 2 * kGiB), 0) << a.err;
}

}  // namespace
}  // namespace gpucap::e2e
