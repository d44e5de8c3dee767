#include "shim/process/config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tests/process/fake_card.h"

namespace gpucap {
namespace {

class ConfigTest : public test::ProcessCase {
 protected:
  ConfigTest() { unsetenv("GPUCAP_DIR"); }
  static Config read() {
    Config config;
    read_config(&config);
    return config;
  }
  static std::string only_complaint(const Config& config) {
    EXPECT_EQ(config.complaint_count, 1);
    return config.complaints[0];
  }
};

TEST_F(ConfigTest, NothingSetMeansWatchOnlyAndQuiet) {
  const Config config = read();
  EXPECT_FALSE(config.disabled);
  EXPECT_FALSE(config.refuse_everything);
  EXPECT_TRUE(config.limits.empty());
  EXPECT_EQ(config.log_level, LogLevel::kWarn);
  EXPECT_STREQ(config.log_file, "");
  EXPECT_EQ(config.directory, "/dev/shm/gpucap-" + std::to_string(geteuid()));
  EXPECT_TRUE(config.directory_is_default);
  EXPECT_STREQ(config.run_id, "");
  EXPECT_EQ(config.complaint_count, 0);
}

TEST_F(ConfigTest, EmptyValuesAreAsGoodAsUnset) {
  for (const char* name :
       {"GPUCAP_LIMIT", "GPUCAP_LOG", "GPUCAP_LOG_FILE", "GPUCAP_DIR", "GPUCAP_DISABLE", "GPUCAP_RUN_ID"})
    setenv(name, "", 1);
  const Config config = read();
  EXPECT_FALSE(config.disabled);
  EXPECT_FALSE(config.refuse_everything);
  EXPECT_TRUE(config.limits.empty());
  EXPECT_EQ(config.log_level, LogLevel::kWarn);
  EXPECT_TRUE(config.directory_is_default);
  EXPECT_EQ(config.complaint_count, 0);
}

TEST_F(ConfigTest, LimitBecomesRules) {
  setenv("GPUCAP_LIMIT", "0=4G,*=50%", 1);
  const Config config = read();
  EXPECT_FALSE(config.refuse_everything);
  EXPECT_EQ(config.limits.for_device(0, "GPU-x", 16 * test::kGiB), 4 * test::kGiB);
  EXPECT_EQ(config.limits.for_device(1, "GPU-x", 16 * test::kGiB), 8 * test::kGiB);
}

TEST_F(ConfigTest, LimitOfZeroIsALimit) {
  setenv("GPUCAP_LIMIT", "0", 1);
  const Config config = read();
  EXPECT_EQ(config.complaint_count, 0);
  EXPECT_EQ(config.limits.for_device(0, "GPU-x", 16 * test::kGiB), 0u);
}

class BadLimit : public ConfigTest, public testing::WithParamInterface<const char*> {};
TEST_P(BadLimit, RefusesEverythingAndNamesVariableValueAndWhatWouldBeRight) {
  setenv("GPUCAP_LIMIT", GetParam(), 1);
  const Config config = read();
  EXPECT_TRUE(config.refuse_everything);
  EXPECT_TRUE(config.limits.empty());
  const std::string complaint = only_complaint(config);
  EXPECT_NE(complaint.find("GPUCAP_LIMIT='" + std::string(GetParam()) + "'"), std::string::npos) << complaint;
  EXPECT_NE(complaint.find("4G, 1.5GiB, 50%"), std::string::npos) << complaint;
  EXPECT_NE(complaint.find("no GPU context is given out"), std::string::npos) << complaint;
}
INSTANTIATE_TEST_SUITE_P(Values, BadLimit,
                         testing::Values("abc", "-1", "4GG", "G", "4", "101%", "1e9", "4G,8G", "0=4G,0=5G", "0=", "=4G",
                                         "99999999T", "4G;8G", "four"));

TEST_F(ConfigTest, ComplaintNamesThePartOfAListThatIsWrong) {
  setenv("GPUCAP_LIMIT", "0=4G,1=lots", 1);
  const std::string complaint = only_complaint(read());
  EXPECT_NE(complaint.find("GPUCAP_LIMIT='0=4G,1=lots': '1=lots' is not a size"), std::string::npos) << complaint;
}

TEST_F(ConfigTest, ComplaintsAreFitForATerminalAndNotEndless) {
  setenv("GPUCAP_LIMIT", ("\x1b[31m\n" + std::string(5000, 'x')).c_str(), 1);
  const std::string complaint = only_complaint(read());
  EXPECT_EQ(complaint.find('\x1b'), std::string::npos);
  EXPECT_EQ(complaint.find('\n'), std::string::npos);
  EXPECT_NE(complaint.find("xxx..."), std::string::npos);
  EXPECT_NE(complaint.find("no GPU context is given out"), std::string::npos)
      << "the end must not be cut off: " << complaint;
}

TEST_F(ConfigTest, LevelsInAnyLetterCase) {
  const std::pair<const char*, LogLevel> levels[] = {{"off", LogLevel::kOff},
                                                     {"error", LogLevel::kError},
                                                     {"warn", LogLevel::kWarn},
                                                     {"Info", LogLevel::kInfo},
                                                     {"DEBUG", LogLevel::kDebug}};
  for (const auto& [text, level] : levels) {
    setenv("GPUCAP_LOG", text, 1);
    const Config config = read();
    EXPECT_EQ(config.log_level, level) << text;
    EXPECT_EQ(config.complaint_count, 0);
  }
}

TEST_F(ConfigTest, UnknownLevelIsSaidAndWarnIsUsed) {
  setenv("GPUCAP_LOG", "verbose", 1);
  const Config config = read();
  EXPECT_EQ(config.log_level, LogLevel::kWarn);
  EXPECT_EQ(only_complaint(config),
            "GPUCAP_LOG='verbose' is not a level (off, error, warn, info, debug); warn is used");
}

TEST_F(ConfigTest, LogFileGetsThePidForPercentP) {
  setenv("GPUCAP_LOG_FILE", "/tmp/a-%p-b-%p-100%.log", 1);
  const std::string pid = std::to_string(getpid());
  EXPECT_EQ(read().log_file, "/tmp/a-" + pid + "-b-" + pid + "-100%.log");
}

TEST_F(ConfigTest, TooLongLogFileGoesToStderrAndIsSaid) {
  setenv("GPUCAP_LOG_FILE", ("/" + std::string(255, 'x')).c_str(), 1);
  const Config config = read();
  EXPECT_STREQ(config.log_file, "");
  EXPECT_NE(only_complaint(config).find("GPUCAP_LOG_FILE is longer than 255"), std::string::npos);
}

TEST_F(ConfigTest, LongestLogFileThatFitsIsTaken) {
  const std::string name = "/" + std::string(254, 'x');
  setenv("GPUCAP_LOG_FILE", name.c_str(), 1);
  const Config config = read();
  EXPECT_EQ(config.log_file, name);
  EXPECT_EQ(config.complaint_count, 0);
}

TEST_F(ConfigTest, DirectoryIsTakenAsNamed) {
  setenv("GPUCAP_DIR", "/somewhere/else", 1);
  const Config config = read();
  EXPECT_STREQ(config.directory, "/somewhere/else");
  EXPECT_FALSE(config.directory_is_default);
}

TEST_F(ConfigTest, DirectoryThatIsNotAnAbsolutePathIsSaidAndTheDefaultUsed) {
  for (const std::string& value : {std::string("relative/path"), "/" + std::string(256, 'd')}) {
    setenv("GPUCAP_DIR", value.c_str(), 1);
    const Config config = read();
    EXPECT_EQ(config.directory, "/dev/shm/gpucap-" + std::to_string(geteuid()));
    EXPECT_TRUE(config.directory_is_default);
    EXPECT_NE(only_complaint(config).find("is not an absolute path"), std::string::npos);
  }
}

TEST_F(ConfigTest, DisableIsOneAndNothingElse) {
  setenv("GPUCAP_DISABLE", "1", 1);
  setenv("GPUCAP_LIMIT", "abc", 1);
  Config config = read();
  EXPECT_TRUE(config.disabled);
  EXPECT_EQ(config.complaint_count, 0) << "what is off has nothing to say";
  unsetenv("GPUCAP_LIMIT");
  setenv("GPUCAP_DISABLE", "0", 1);
  config = read();
  EXPECT_FALSE(config.disabled);
  EXPECT_EQ(config.complaint_count, 0);
  setenv("GPUCAP_DISABLE", "yes", 1);
  config = read();
  EXPECT_FALSE(config.disabled) << "a cap is not lifted by a guess";
  EXPECT_EQ(only_complaint(config), "GPUCAP_DISABLE='yes' is neither 0 nor 1; gpucap stays on");
}

TEST_F(ConfigTest, RunIdIsKeptAndCutToItsPlace) {
  setenv("GPUCAP_RUN_ID", "run-1", 1);
  EXPECT_STREQ(read().run_id, "run-1");
  setenv("GPUCAP_RUN_ID", std::string(100, 'r').c_str(), 1);
  EXPECT_EQ(read().run_id, std::string(31, 'r'));
}

TEST_F(ConfigTest, EveryComplaintOfABadEnvironmentIsKept) {
  setenv("GPUCAP_DISABLE", "maybe", 1);
  setenv("GPUCAP_LIMIT", "abc", 1);
  setenv("GPUCAP_LOG", "loud", 1);
  setenv("GPUCAP_DIR", "here", 1);
  EXPECT_EQ(read().complaint_count, 4);
  setenv("GPUCAP_LOG_FILE", std::string(300, 'x').c_str(), 1);
  EXPECT_EQ(read().complaint_count, Config::kMaxComplaints) << "the fifth has no place, and does no harm";
}

TEST_F(ConfigTest, EnvironmentIsOnlyRead) {
  setenv("GPUCAP_LIMIT", "4G", 1);
  setenv("GPUCAP_LOG_FILE", "/tmp/%p", 1);
  std::string before, after;
  for (char** entry = environ; *entry != nullptr; ++entry) before += std::string(*entry) + "\n";
  read();
  for (char** entry = environ; *entry != nullptr; ++entry) after += std::string(*entry) + "\n";
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace gpucap
