// A guest's manners: what the program has set up stays as it was, and where gpucap's own folder cannot be used, the cap
// holds and one line says why.
#include <sys/mount.h>
#include <sys/stat.h>

#include <cstring>
#include <memory>

#include "tests/e2e/life_world.h"

namespace gpucap::e2e {
namespace {

class Manners : public LifeWorld, public testing::WithParamInterface<const char*> {
 protected:
  // Compiles the German locale into a folder of the tests' own, where the machine has its source.
  static void SetUpTestSuite() {
    char name[] = "/tmp/gpucap-locale-XXXXXX";
    locales_ = mkdtemp(name);
    std::system(("localedef -i de_DE -f UTF-8 " + locales_ + "/de_DE.UTF-8 >/dev/null 2>&1").c_str());
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(locales_); }

  static inline std::string locales_;
};

TEST_P(Manners, EverythingThatAProgramSetsUpStaysAsItWas) {
  Environment without = bare(), with = capped("4G");
  // Each on a machine of its own: the fake driver's errno tells of other processes' deaths.
  without["FAKE_CUDA_STATE"] = folder_ + "/another-machine";
  const bool german = std::filesystem::exists(locales_ + "/de_DE.UTF-8/LC_NUMERIC");
  if (german) without["LOCPATH"] = with["LOCPATH"] = locales_;
  Child plain(program({"manners", GetParam()}), without), child(program({"manners", GetParam()}), with);
  ASSERT_EQ(plain.finish(), 0) << plain.err;
  const pid_t pid = child.pid;
  ASSERT_EQ(child.finish(), 0) << child.err;
  if (german) {
    ASSERT_NE(plain.out.find("point ,"), std::string::npos) << "the locale was not taken";
  }
  EXPECT_NE(plain.out.find("too much: 2"), std::string::npos) << plain.out;
  const uint64_t descriptors = number(plain.out, "descriptors");
  EXPECT_EQ(number(child.out, "descriptors"), descriptors + 1) << "one for the life lock, and no more";
  const auto without_the_count = [](const std::string& text) { return text.substr(0, text.find("descriptors=")); };
  EXPECT_EQ(without_the_count(child.out), without_the_count(plain.out));
  EXPECT_NE(child.err.find("the cap of 4.00 GiB"), std::string::npos)
      << "figures do not follow the locale: " << child.err;
  const std::vector<SeenSegment> left = seen(pid);
  ASSERT_EQ(left.size(), 1u) << "made whatever the umask";
  struct stat status {};
  ASSERT_EQ(stat(left[0].path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(segments().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}
// NVML, asked by gpucap, stumbles over a process that has just died. The bare driver never asks it.
TEST_F(LifeWorld, ErrnoIsKeptWhileAContextIsMeasured) {
  for (const bool with : {false, true}) {
    auto other = std::make_unique<Child>(program({"hold", "1000"}), bare());
    ASSERT_TRUE(other->wait_for("READY"));
    Child child(program({"errno-at-start"}), with ? capped("4G") : bare());
    ASSERT_TRUE(child.wait_for("FIRST"));
    other.reset();
    child.tell("\n");
    ASSERT_TRUE(child.wait_for("READY"));
    EXPECT_EQ(value_of(child.out, "retain"), "0");
    EXPECT_EQ(value_of(child.out, "errno_kept"), "1") << (with ? "with gpucap" : "the test itself is broken");
  }
}

INSTANTIATE_TEST_SUITE_P(Umask, Manners, testing::Values("000", "022", "077", "777"),
                         [](const auto& test) { return std::string(test.param); });

class Folder : public LifeWorld {
 protected:
  ~Folder() override {
    for (const std::string& mounted : mounted_) umount2(mounted.c_str(), MNT_DETACH);
    for (const std::string& path : to_remove_) std::filesystem::remove_all(path);
  }
  // A file system of its own; false where we may not.
  bool mount_tiny(const std::string& path, unsigned long flags, const char* options) {
    std::filesystem::create_directories(path);
    if (mount("none", path.c_str(), "tmpfs", flags, options) != 0) return false;
    mounted_.push_back(path);
    return true;
  }
  std::vector<std::string> filler() {
    return client({"linked", "until-refused", "alloc", std::to_string(512 * kMiB), "100"});
  }

  void expect_capped_and(const std::vector<std::string>& command, const Environment& environment, const char* said) {
    Child child(command, environment);
    ASSERT_TRUE(child.wait_for("READY")) << child.out << child.err;
    EXPECT_EQ(value_of(child.out, "taken"), "6");
    EXPECT_EQ(value_of(child.out, "result"), "2");
    EXPECT_LE(truth(child.pid).peak, 4 * kGiB);
    const size_t at = child.err.find("cannot publish figures");
    if (*said == '\0') {
      EXPECT_EQ(at, std::string::npos) << child.err;
    } else {
      ASSERT_NE(at, std::string::npos) << child.err;
      EXPECT_EQ(child.err.find("cannot publish figures", at + 1), std::string::npos) << "said more than once";
      EXPECT_NE(child.err.find(said, at), std::string::npos) << child.err;
      EXPECT_NE(child.err.find("the cap holds", at), std::string::npos) << child.err;
    }
    EXPECT_EQ(child.finish(), 0);
  }

  // The rest as a user who is neither root nor the owner of anything here. Only root can play another.
  std::vector<std::string> as_stranger(std::vector<std::string> command) {
    command.insert(command.begin(), {LIFE_PROGRAM, "as", std::to_string(stranger_)});
    return command;
  }
  bool can_play_a_stranger() {
    if (geteuid() != 0) return false;
    chmod(folder_.c_str(), 0777);
    chmod((folder_ + "/machine").c_str(), 0666);
    // Everything on the way to the build must be open to the stranger.
    Child probe(as_stranger({"/bin/sh", "-c", "test -x " CLIENT_PROGRAM " -a -r " GPUCAP_LIBRARY}), bare());
    return probe.finish() == 0;
  }
  Environment of_the_default_folder() {
    Environment environment = capped("4G");
    environment.erase("GPUCAP_DIR");
    return environment;
  }
  std::string default_folder() {
    const std::string path = "/dev/shm/gpucap-" + std::to_string(stranger_);
    to_remove_.push_back(path);
    return path;
  }

  const uid_t stranger_ = 1700000000 + static_cast<uid_t>(getpid() % 1000000);
  std::vector<std::string> mounted_, to_remove_;
};

#define NEEDS_A_STRANGER() \
  if (!can_play_a_stranger()) GTEST_SKIP() << "needs root, and a build that everybody may read"

TEST_F(Folder, WithoutRoomForTheFileTheCapHolds) {
  const std::string tiny = folder_ + "/tiny";
  if (!mount_tiny(tiny, 0, "size=64k")) GTEST_SKIP() << "needs the right to mount";
  Environment environment = capped("4G");
  environment["GPUCAP_DIR"] = tiny;
  expect_capped_and(filler(), environment, "no space for the file (No space left on device)");
  EXPECT_TRUE(std::filesystem::is_empty(tiny)) << "nothing half made is left to fill it further";
}

TEST_F(Folder, BeyondTheFileSizeLimitTheCapHoldsAndNoSignalComes) {
  expect_capped_and(program({"small-files", std::to_string(512 * kMiB)}), capped("4G"),
                    "no space for the file (File too large)");
  EXPECT_TRUE(std::filesystem::is_empty(segments()));
}

TEST_F(Folder, OnAReadOnlyFileSystemTheCapHolds) {
  const std::string fixed = folder_ + "/fixed";
  if (!mount_tiny(fixed, MS_RDONLY, "")) GTEST_SKIP() << "needs the right to mount";
  Environment environment = capped("4G");
  environment["GPUCAP_DIR"] = fixed;
  expect_capped_and(filler(), environment, "the file cannot be created (Read-only file system)");
  environment["GPUCAP_DIR"] = fixed + "/below";
  expect_capped_and(filler(), environment, "the directory cannot be made or opened");
}

TEST_F(Folder, ThatIsAFileIsSaid) {
  close(open(segments().c_str(), O_CREAT | O_WRONLY, 0600));
  expect_capped_and(filler(), capped("4G"), "the directory cannot be made or opened (Not a directory)");
}

TEST_F(Folder, NamedByTheUserMayBeALink) {
  std::filesystem::create_directories(folder_ + "/real");
  std::filesystem::create_directory_symlink(folder_ + "/real", segments());
  expect_capped_and(filler(), capped("4G"), "");
  EXPECT_FALSE(std::filesystem::is_empty(folder_ + "/real"));
}

TEST_F(Folder, FullOfTrapsDoesNotHoldAnybodyUp) {
  std::filesystem::create_directories(segments());
  const std::string name = segments() + "/777.00000000000000";
  ASSERT_EQ(mkfifo((name + "01.gpucap").c_str(), 0600), 0);
  std::filesystem::create_symlink("/etc/passwd", name + "02.gpucap");
  std::filesystem::create_directory(name + "03.gpucap");
  close(open((name + "04.gpucap").c_str(), O_CREAT | O_WRONLY, 0));
  expect_capped_and(filler(), capped("4G"), "");
  EXPECT_TRUE(std::filesystem::exists(name + "01.gpucap")) << "what is not ours is left alone";
  EXPECT_TRUE(std::filesystem::exists("/etc/passwd"));
}

TEST_F(Folder, OfAnotherUserIsNotWrittenInto) {
  NEEDS_A_STRANGER();
  for (const mode_t mode : {0700u, 0755u}) {
    std::filesystem::create_directories(segments());
    chmod(segments().c_str(), mode);
    expect_capped_and(as_stranger(filler()), capped("4G"),
                      mode == 0700 ? "the directory cannot be made or opened (Permission denied)"
                                   : "the file cannot be created (Permission denied)");
    EXPECT_TRUE(std::filesystem::is_empty(segments()));
  }
}

TEST_F(Folder, NamedByTheUserMayBeOpenToAllAndTheFileIsStillOursAlone) {
  NEEDS_A_STRANGER();
  std::filesystem::create_directories(segments());
  chmod(segments().c_str(), 0777);
  expect_capped_and(as_stranger(filler()), capped("4G"), "");
  const std::vector<SeenSegment> left = seen();
  ASSERT_EQ(left.size(), 1u);
  struct stat status {};
  ASSERT_EQ(stat(left[0].path.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, stranger_);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(segments().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0777u) << "a folder that was there keeps its rights";
}

TEST_F(Folder, ByDefaultIsMadeForItsUserAlone) {
  NEEDS_A_STRANGER();
  const std::string folder = default_folder();
  expect_capped_and(as_stranger(filler()), of_the_default_folder(), "");
  struct stat status {};
  ASSERT_EQ(stat(folder.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, stranger_);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(Folder, UnderTheDefaultNameThatSomebodyElseMadeIsNotUsed) {
  NEEDS_A_STRANGER();
  const char* foreign = "the directory belongs to someone else or is open to others";
  const std::string folder = default_folder();
  std::filesystem::create_directory(folder);
  chmod(folder.c_str(), 0777);
  expect_capped_and(as_stranger(filler()), of_the_default_folder(), foreign);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  // Of the user, but open to others, who may have put anything there.
  ASSERT_EQ(chown(folder.c_str(), stranger_, stranger_), 0);
  expect_capped_and(as_stranger(filler()), of_the_default_folder(), foreign);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  // A link to a folder of the user's own.
  std::filesystem::remove(folder);
  const std::string target = folder_ + "/target";
  std::filesystem::create_directory(target);
  chmod(target.c_str(), 0700);
  ASSERT_EQ(chown(target.c_str(), stranger_, stranger_), 0);
  std::filesystem::create_directory_symlink(target, folder);
  expect_capped_and(as_stranger(filler()), of_the_default_folder(), foreign);
  EXPECT_TRUE(std::filesystem::is_empty(target));
}

}  // namespace
}  // namespace gpucap::e2e
