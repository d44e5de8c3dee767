// The policy file as a process meets it: what root allows holds, whatever the environment says. The test build of the
// library takes the file that GPUCAP_TEST_POLICY names; everything else is the library as it is.
#include <sys/stat.h>

#include <fstream>

#include "tests/e2e/told.h"

namespace gpucap::e2e {
namespace {

class PolicyTest : public World {
 protected:
  Environment under(const std::string& text, const std::string& limit = "") {
    const std::string path = folder_ + "/gpucap.conf";
    std::ofstream(path) << text;
    chmod(path.c_str(), 0644);
    Environment environment = capped(limit);
    environment["LD_PRELOAD"] = GPUCAP_TESTING_LIBRARY;
    environment["GPUCAP_TEST_POLICY"] = path;
    return environment;
  }
  static std::string me() { return std::to_string(getuid()); }
  gpucap_device gauges(pid_t pid) { return segment(pid).devices.at(0).gauges; }
};

TEST_F(PolicyTest, TheLowestOfFileAndEnvironmentWins) {
  Told alone(under("limit = 2G\n"));
  ASSERT_EQ(alone.does("start"), 0);
  EXPECT_EQ(alone.take("alloc", 2 * kGiB), 2);
  EXPECT_EQ(gauges(alone.pid).limit_bytes, 2 * kGiB);
  EXPECT_EQ(gauges(alone.pid).policy_limit_bytes, 2 * kGiB);
  EXPECT_EQ(gauges(alone.pid).limit_source, GPUCAP_LIMIT_FROM_POLICY);
  Told higher(under("limit = 2G\n", "8G"));
  ASSERT_EQ(higher.does("start"), 0);
  EXPECT_EQ(higher.take("alloc", 2 * kGiB), 2);
  Told lower(under("limit = 2G\n", "1G"));
  ASSERT_EQ(lower.does("start"), 0);
  EXPECT_EQ(lower.take("alloc", kGiB), 2);
  EXPECT_EQ(gauges(lower.pid).limit_source, GPUCAP_LIMIT_FROM_ENVIRONMENT);
  Told own(under("limit = 2G\n[user " + me() + "]\nlimit = 4G\n"));
  ASSERT_EQ(own.does("start"), 0);
  EXPECT_EQ(own.take("alloc", 3 * kGiB), 0);
  Told free(under("limit = 2G\n[user " + me() + "]\nlimit = none\n"));
  ASSERT_EQ(free.does("start"), 0);
  EXPECT_EQ(free.take("alloc", 10 * kGiB), 0);
}

TEST_F(PolicyTest, NeitherDisablingNorObservingLiftsIt) {
  Environment disabled = under("limit = 2G\n");
  disabled["GPUCAP_DISABLE"] = "1";
  Told a(disabled);
  ASSERT_EQ(a.does("start"), 0);
  EXPECT_EQ(a.take("alloc", 2 * kGiB), 2);
  EXPECT_NE(a.err.find("GPUCAP_DISABLE=1 has no effect"), std::string::npos) << a.err;
  Environment observing = under("limit = 2G\n", "1G");
  observing["GPUCAP_ON_LIMIT"] = "observe";
  Told b(observing);
  ASSERT_EQ(b.does("start"), 0);
  EXPECT_EQ(b.take("alloc", kGiB), 0) << "over its own limit, which it only observes";
  EXPECT_EQ(gauges(b.pid).observed_count, 1u);
  EXPECT_EQ(b.take("alloc", kGiB), 2) << "over the file's";
  EXPECT_NE(b.err.find("the cap of 2.00 GiB"), std::string::npos) << b.err;
  ASSERT_EQ(b.does("info"), 0);
  EXPECT_EQ(number(b.out, "total"), 2 * kGiB);
  Environment elsewhere = under("limit = 20G\n[group team]\nlimit = 2G\n");  // says nothing that binds anybody here
  elsewhere["GPUCAP_DISABLE"] = "1";
  Told c(under("[group team]\nlimit = 2G\n"));
  ASSERT_EQ(c.does("start"), 0);
  EXPECT_EQ(c.take("alloc", 10 * kGiB), 0);
}

TEST_F(PolicyTest, TheFileMayOnlyObserve) {
  Told a(under("limit = 1G\non_limit = observe\n"));
  ASSERT_EQ(a.does("start"), 0);
  EXPECT_EQ(a.take("alloc", 2 * kGiB), 0);
  EXPECT_EQ(gauges(a.pid).observed_count, 1u);
  EXPECT_EQ(gauges(a.pid).refused_count, 0u);
}

TEST_F(PolicyTest, PutsAUsersProcessesIntoOneGroup) {
  const std::string group = "policy-test-" + std::to_string(getpid());
  const std::string text = "[user " + me() + "]\ngroup = " + group + "\ngroup_limit = 3G\n";
  Environment elsewhere = under(text);
  elsewhere["GPUCAP_DIR"] = folder_ + "/another";  // cannot be escaped by going elsewhere
  elsewhere["GPUCAP_GROUP"] = "mine";
  Told a(under(text)), b(elsewhere);
  ASSERT_EQ(a.does("start"), 0);
  ASSERT_EQ(b.does("start"), 0);
  EXPECT_NE(b.err.find("GPUCAP_GROUP='mine' is not used"), std::string::npos) << b.err;
  ASSERT_EQ(a.take("alloc", kGiB), 0);
  EXPECT_EQ(b.take("alloc", kGiB), 2);
  EXPECT_LE(truth_.used(0), 3 * kGiB);
  a.finish();
  b.finish();
  unlink(("/dev/shm/gpucap-" + std::to_string(geteuid()) + "/" + group + ".gpucap-group").c_str());
}

TEST_F(PolicyTest, CapsAGroupThatWasJoinedByChoice) {
  Environment member = under("[group team]\nlimit = 2G\n");
  member["GPUCAP_GROUP"] = "team";
  member["GPUCAP_GROUP_LIMIT"] = "8G";
  Told a(member);
  ASSERT_EQ(a.does("start"), 0);
  EXPECT_EQ(a.take("alloc", 2 * kGiB), 2);
  EXPECT_EQ(gauges(a.pid).group_limit_bytes, 2 * kGiB);
}

TEST_F(PolicyTest, ABadLineIsToldWithItsPlaceAndClosesForWhomItConcerns) {
  Told a(under("limit = 8G\n  limt = 4G\n"));
  EXPECT_EQ(a.does("start"), 1);
  EXPECT_NE(a.err.find("gpucap.conf:2:3: 'limt' is not a key"), std::string::npos) << a.err;
  EXPECT_EQ(truth_.used(0), 0u);
  Told b(under("limit = 8G\n[user somebody-else-entirely]\nlimt = 4G\n"));
  EXPECT_EQ(b.does("start"), 0);
  EXPECT_EQ(b.err, "") << "another user's line is not this one's business";
}

TEST_F(PolicyTest, AFileThatOthersMayWriteOrNobodyMayReadCloses) {
  Environment environment = under("limit = 8G\n");
  chmod((folder_ + "/gpucap.conf").c_str(), 0666);
  Told a(environment);
  EXPECT_EQ(a.does("start"), 1);
  EXPECT_NE(a.err.find("must belong to root and be writable by nobody else"), std::string::npos) << a.err;
  unlink((folder_ + "/gpucap.conf").c_str());
  mkdir((folder_ + "/gpucap.conf").c_str(), 0755);
  Told b(environment);
  EXPECT_EQ(b.does("start"), 1);
  EXPECT_NE(b.err.find("cannot be read"), std::string::npos) << b.err;
}

}  // namespace
}  // namespace gpucap::e2e
