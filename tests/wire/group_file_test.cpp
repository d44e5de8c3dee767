// A group's file as the tools read and change it: sound and damaged, with members that live, died or left.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <fstream>
#include <vector>

#include "tests/wire/scratch.h"
#include "wire/control.h"

namespace gpucap::wire {
namespace {

using test::Child;
using test::ScratchDirectory;

constexpr uint64_t kGiB = uint64_t{1} << 30;

// Two devices, four slots; slot 0 was never taken.
struct GroupTest : testing::Test {
  ScratchDirectory directory;
  gpucap_group_header header = {};
  std::vector<gpucap_group_slot> slots = std::vector<gpucap_group_slot>(GPUCAP_GROUP_SLOTS);
  int error_number = 0;

  [[nodiscard]] std::string path() const { return directory.path() + "/team.gpucap-group"; }
  void SetUp() override {
    header.magic = GPUCAP_GROUP_MAGIC;
    header.major = GPUCAP_GROUP_MAJOR;
    header.header_bytes = sizeof(header);
    header.slot_count = GPUCAP_GROUP_SLOTS;
    header.slot_bytes = sizeof(gpucap_group_slot);
    header.file_bytes = sizeof(header) + slots.size() * sizeof(gpucap_group_slot);
    std::strcpy(header.name, "team");
    header.device_count = 2;
    header.highest_slot = 4;
    for (uint8_t i = 0; i < 2; ++i) {
      header.devices[i].uuid[0] = static_cast<uint8_t>(i + 1);
      header.devices[i].limit_bytes = 8 * kGiB;
    }
  }
  void take_slot(uint32_t number, pid_t pid, int64_t held_bytes) {
    gpucap_group_slot& slot = slots[number];
    slot.incarnation = 1;
    slot.pid = static_cast<uint32_t>(pid);
    slot.uid = geteuid();
    slot.pid_namespace = own_pid_namespace();
    char state = 0;
    read_start_ticks(slot.pid, &slot.start_ticks, &state);
    slot.shares[0].held_bytes = held_bytes;
    slot.shares[1].wait_bytes = 5;
    slot.shares[1].wait_ticket = number;
  }
  void write_file() {
    std::ofstream file(path(), std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(&header), sizeof(header));
    file.write(reinterpret_cast<const char*>(slots.data()),
               static_cast<std::streamsize>(slots.size() * sizeof(gpucap_group_slot)));
    ASSERT_TRUE(file.good());
  }
  // A process that holds a slot's lock, has the file mapped, or both.
  [[nodiscard]] std::function<void(const Child::Channel&)> member(int locked_slot, bool mapped) const {
    return [this, locked_slot, mapped](const Child::Channel& channel) {
      static_cast<void>(channel.hear());
      const int fd = ::open(path().c_str(), O_RDWR | O_CLOEXEC);
      struct flock lock = {};
      lock.l_type = F_WRLCK;
      lock.l_start = GPUCAP_GROUP_SLOT_LOCK(locked_slot);
      lock.l_len = 1;
      bool done = locked_slot < 0 || fcntl(fd, F_SETLK, &lock) == 0;
      if (mapped) done = done && mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED;
      channel.say(done ? 'r' : 'f');
      static_cast<void>(channel.hear());
    };
  }
  ControlError open_and_look(GroupSnapshot* snapshot) {
    GroupFile file;
    const ControlError error = file.open(directory.fd(), "team", false, &error_number);
    return error != ControlError::kNone ? error : file.snapshot(snapshot, &error_number);
  }
};

TEST_F(GroupTest, TellsDevicesLivingMembersAndWhatTheyHold) {
  const Child locked(member(1, false));
  const Child mapped(member(-1, true));
  const Child neither(member(-1, false));
  take_slot(1, locked.pid(), static_cast<int64_t>(2 * kGiB));
  take_slot(2, mapped.pid(), static_cast<int64_t>(kGiB));
  take_slot(3, neither.pid(), static_cast<int64_t>(9 * kGiB));
  write_file();
  for (const Child* child : {&locked, &mapped, &neither}) {
    child->say('g');
    ASSERT_EQ(child->hear(), 'r');
  }
  GroupSnapshot group;
  ASSERT_EQ(open_and_look(&group), ControlError::kNone);
  EXPECT_EQ(group.name, "team");
  ASSERT_EQ(group.devices.size(), 2u);
  EXPECT_EQ(group.devices[1].uuid[0], 2);
  EXPECT_EQ(group.devices[0].limit_bytes, 8 * kGiB);
  EXPECT_EQ(group.devices[0].used_bytes, static_cast<int64_t>(3 * kGiB));
  ASSERT_EQ(group.members.size(), 2u) << "one that neither holds its lock nor maps the file has left";
  EXPECT_EQ(group.members[0].viewer_pid, locked.pid());
  EXPECT_EQ(group.members[1].pid, static_cast<uint32_t>(mapped.pid()));
  EXPECT_EQ(group.members[1].shares[1].wait_bytes, 5u);
  EXPECT_EQ(group.members[1].shares[1].wait_ticket, 2u);
}

TEST_F(GroupTest, TheDeadAndRecycledPidsAreNoMembers) {
  Child dead(member(1, true));
  Child recycled(member(-1, true));
  take_slot(1, dead.pid(), 5);
  take_slot(2, recycled.pid(), 7);
  slots[2].start_ticks += 1;
  write_file();
  for (const Child* child : {&dead, &recycled}) {
    child->say('g');
    ASSERT_EQ(child->hear(), 'r');
  }
  dead.kill_and_wait();
  GroupSnapshot group;
  ASSERT_EQ(open_and_look(&group), ControlError::kNone);
  EXPECT_TRUE(group.members.empty());
  EXPECT_EQ(group.devices[0].used_bytes, 0);
}

TEST_F(GroupTest, AMemberOfAnotherNamespaceLivesByItsLockAlone) {
  const Child locked(member(1, false));
  take_slot(1, 1, 5);
  take_slot(2, 1, 7);
  slots[1].pid_namespace = slots[2].pid_namespace = 4;
  write_file();
  locked.say('g');
  ASSERT_EQ(locked.hear(), 'r');
  GroupSnapshot group;
  ASSERT_EQ(open_and_look(&group), ControlError::kNone);
  ASSERT_EQ(group.members.size(), 1u);
  EXPECT_EQ(group.members[0].pid, 1u);
  EXPECT_EQ(group.members[0].viewer_pid, locked.pid());
}

TEST_F(GroupTest, TheLimitOfOneDeviceOrOfAllIsSet) {
  write_file();
  GroupFile file;
  GroupSnapshot group;
  ASSERT_EQ(file.open(directory.fd(), "team", true, &error_number), ControlError::kNone);
  EXPECT_EQ(file.owner_uid(), geteuid());
  ASSERT_EQ(file.set_limit(1, 12 * kGiB, &error_number), ControlError::kNone);
  ASSERT_EQ(file.snapshot(&group, &error_number), ControlError::kNone);
  EXPECT_EQ(group.devices[0].limit_bytes, 8 * kGiB);
  EXPECT_EQ(group.devices[1].limit_bytes, 12 * kGiB);
  ASSERT_EQ(file.set_limit(-1, kGiB, &error_number), ControlError::kNone);
  ASSERT_EQ(file.snapshot(&group, &error_number), ControlError::kNone);
  EXPECT_EQ(group.devices[0].limit_bytes, kGiB);
  EXPECT_EQ(group.devices[1].limit_bytes, kGiB);
  for (const int device : {2, -2, 32}) EXPECT_EQ(file.set_limit(device, 1, &error_number), ControlError::kNoSuchDevice);
}

TEST_F(GroupTest, AFileOpenedToReadIsNotWrittenTo) {
  write_file();
  GroupFile file;
  ASSERT_EQ(file.open(directory.fd(), "team", false, &error_number), ControlError::kNone);
  EXPECT_NE(file.set_limit(0, 1, &error_number), ControlError::kNone);
}

TEST_F(GroupTest, ImpossibleFilesAreRefusedAndHostileFiguresDoNoHarm) {
  GroupSnapshot group;
  const gpucap_group_header sound = header;
  const std::function<void()> damages[] = {
      [&] { header.magic = 7; },
      [&] { header.major = 2; },
      [&] { header.header_bytes = 64; },
      [&] { header.header_bytes = UINT32_MAX - 7; },
      [&] { header.slot_bytes = 8; },
      [&] { header.slot_count = UINT32_MAX; },
      [&] { header.slot_count = GPUCAP_GROUP_SLOTS + 1; },
      [&] { header.device_count = GPUCAP_GROUP_DEVICES + 1; },
      [&] { header.file_bytes = UINT64_MAX; },
  };
  for (const auto& damage : damages) {
    header = sound;
    damage();
    write_file();
    EXPECT_EQ(open_and_look(&group), ControlError::kUnreadable);
  }
  header = sound;
  header.highest_slot = UINT32_MAX;
  std::memset(header.name, '\x1b', sizeof(header.name));
  const Child locked(member(1, false));
  take_slot(1, locked.pid(), INT64_MIN);
  write_file();
  locked.say('g');
  ASSERT_EQ(locked.hear(), 'r');
  ASSERT_EQ(open_and_look(&group), ControlError::kNone);
  EXPECT_EQ(group.devices[0].used_bytes, 0);
  EXPECT_EQ(group.name.find('\x1b'), std::string::npos);
}

TEST_F(GroupTest, ATruncatedFileIsNoCrash) {
  write_file();
  GroupFile file;
  GroupSnapshot group;
  ASSERT_EQ(file.open(directory.fd(), "team", true, &error_number), ControlError::kNone);
  ASSERT_EQ(truncate(path().c_str(), 100), 0);
  EXPECT_EQ(file.snapshot(&group, &error_number), ControlError::kUnreadable);
  EXPECT_EQ(file.set_limit(0, 1, &error_number), ControlError::kUnreadable);
}

TEST_F(GroupTest, NamesAreListedSortedAndWhatIsNoGroupIsNot) {
  for (const char* name : {"b.gpucap-group", "a.gpucap-group", ".c.gpucap-group", "-d.gpucap-group", "e f.gpucap-group",
                           ".gpucap-group", "g.gpucap", "h.gpucap-group.tmp"}) {
    std::ofstream(directory.path() + "/" + name).put('x');
  }
  std::ofstream(directory.path() + "/" + std::string(64, 'x') + ".gpucap-group").put('x');
  EXPECT_EQ(group_names(directory.fd()), (std::vector<std::string>{"a", "b"}));
  GroupFile file;
  for (const char* name : {"", "../a", "a/b", ".", "-d"}) {
    EXPECT_EQ(file.open(directory.fd(), name, false, &error_number), ControlError::kCannotOpen) << name;
  }
  EXPECT_EQ(file.open(directory.fd(), "a", false, &error_number), ControlError::kUnreadable);
}

}  // namespace
}  // namespace gpucap::wire
