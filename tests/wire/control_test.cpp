// Changing the limit of a process from outside: the control region of a sound, a damaged and a foreign segment.
#include "wire/control.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <vector>

#include "tests/wire/scratch.h"

namespace gpucap::wire {
namespace {

using test::Child;
using test::ScratchDirectory;
using test::segment_owner;

constexpr uint64_t kGiB = uint64_t{1} << 30;

std::vector<char> content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class T>
void put(const std::string& path, uint64_t offset, const T& value) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(offset));
  file.write(reinterpret_cast<const char*>(&value), sizeof(value));
  ASSERT_TRUE(file.good());
}

gpucap_control control_in(const ScratchDirectory& directory, const std::string& name) {
  SegmentReader reader;
  int error_number = 0;
  EXPECT_EQ(reader.open(directory.fd(), name.c_str(), &error_number), ReadError::kNone);
  const std::vector<char> bytes = content_of(directory.path() + "/" + name);
  gpucap_control control = {};
  EXPECT_NE(reader.control_offset(), 0u);
  std::memcpy(&control, bytes.data() + reader.control_offset(), sizeof(control));
  return control;
}

// A segment of a process that has ended, with two devices.
struct ControlTest : testing::Test {
  ScratchDirectory directory;
  std::string name;
  std::string path;
  int error_number = 0;
  void SetUp() override {
    Child owner(segment_owner(directory.path()));
    ASSERT_EQ(owner.hear(), 'r');
    name = directory.only_file();
    path = directory.path() + "/" + name;
  }
  ControlError request(int ordinal, uint64_t bytes) {
    return request_limit(directory.fd(), name.c_str(), ordinal, bytes, &error_number);
  }
  uint64_t control_region() {
    gpucap_header header = {};
    const std::vector<char> bytes = content_of(path);
    std::memcpy(&header, bytes.data(), sizeof(header));
    for (uint64_t i = 0; i < header.region_count; ++i) {
      if (header.regions[i].type == GPUCAP_REGION_CONTROL) return i;
    }
    ADD_FAILURE() << "no control region";
    return 0;
  }
  uint64_t region_field(size_t within) {
    return offsetof(gpucap_header, regions) + control_region() * sizeof(gpucap_region) + within;
  }
};

TEST_F(ControlTest, ALimitIsAskedForOneDevice) {
  const gpucap_control before = control_in(directory, name);
  ASSERT_EQ(request(1, 6 * kGiB), ControlError::kNone);
  const gpucap_control after = control_in(directory, name);
  EXPECT_EQ(after.sequence, before.sequence + 1);
  EXPECT_EQ(after.limit_bytes[0], before.limit_bytes[0]);
  EXPECT_EQ(after.limit_bytes[1], 6 * kGiB);
}

TEST_F(ControlTest, ALimitIsAskedForEveryDeviceAndCountsOnce) {
  ASSERT_EQ(request(0, kGiB), ControlError::kNone);
  ASSERT_EQ(request(-1, GPUCAP_WIRE_NO_LIMIT), ControlError::kNone);
  const gpucap_control after = control_in(directory, name);
  EXPECT_EQ(after.sequence, 2u);
  EXPECT_EQ(after.limit_bytes[0], GPUCAP_WIRE_NO_LIMIT);
  EXPECT_EQ(after.limit_bytes[1], GPUCAP_WIRE_NO_LIMIT);
}

TEST_F(ControlTest, NothingElseInTheFileChanges) {
  std::vector<char> before = content_of(path);
  ASSERT_EQ(request(0, 3 * kGiB), ControlError::kNone);
  std::vector<char> after = content_of(path);
  ASSERT_EQ(before.size(), after.size());
  SegmentReader reader;
  ASSERT_EQ(reader.open(directory.fd(), name.c_str(), &error_number), ReadError::kNone);
  const auto from = static_cast<std::ptrdiff_t>(reader.control_offset());
  for (std::vector<char>* bytes : {&before, &after}) {
    std::fill_n(bytes->begin() + from, sizeof(gpucap_control), '\0');
  }
  EXPECT_EQ(before, after);
}

TEST_F(ControlTest, AnOrdinalThatIsNotThereIsRefused) {
  const std::vector<char> before = content_of(path);
  for (const int ordinal : {2, 63, 64, 1000000, -2}) EXPECT_EQ(request(ordinal, kGiB), ControlError::kNoSuchDevice);
  EXPECT_EQ(content_of(path), before);
}

TEST_F(ControlTest, DamagedSegmentsAreNotWrittenTo) {
  const uint64_t file_bytes = content_of(path).size();
  const struct {
    size_t offset;
    uint64_t value;
  } damages[] = {
      {offsetof(gpucap_header, magic), 1},
      {offsetof(gpucap_header, region_count), 17},
      {region_field(offsetof(gpucap_region, offset)), 0},
      {region_field(offsetof(gpucap_region, offset)), 2049},
      {region_field(offsetof(gpucap_region, offset)), file_bytes},
      {region_field(offsetof(gpucap_region, offset)), (file_bytes / 64 * 64) - 512},
      {region_field(offsetof(gpucap_region, offset)), UINT64_MAX - 63},
      {region_field(offsetof(gpucap_region, count)), 0},
      {region_field(offsetof(gpucap_region, count)), UINT64_MAX},
  };
  const std::vector<char> whole = content_of(path);
  for (const auto& damage : damages) {
    uint64_t before = 0;
    std::memcpy(&before, whole.data() + damage.offset, sizeof(before));
    if (damage.offset == offsetof(gpucap_header, region_count)) {
      put(path, damage.offset, static_cast<uint32_t>(damage.value));
    } else {
      put(path, damage.offset, damage.value);
    }
    const std::vector<char> damaged = content_of(path);
    EXPECT_EQ(request(-1, kGiB), ControlError::kUnreadable) << damage.offset << " " << damage.value;
    EXPECT_EQ(content_of(path), damaged);
    put(path, damage.offset, before);
  }
  ASSERT_EQ(truncate(path.c_str(), 100), 0);
  EXPECT_EQ(request(-1, kGiB), ControlError::kUnreadable);
}

TEST_F(ControlTest, ASegmentOfAnotherMajorIsLeftAlone) {
  put(path, offsetof(gpucap_header, major), uint16_t{GPUCAP_WIRE_MAJOR - 1});
  EXPECT_EQ(request(-1, kGiB), ControlError::kUnreadable);
}

TEST_F(ControlTest, ASegmentWithoutTheRegionIsDamaged) {
  put(path, region_field(offsetof(gpucap_region, type)), uint32_t{GPUCAP_REGION_NONE});
  EXPECT_EQ(request(-1, kGiB), ControlError::kUnreadable);
}

TEST_F(ControlTest, LinksAndOtherThingsAreNotFollowed) {
  ASSERT_EQ(symlinkat(name.c_str(), directory.fd(), "1.0000000000000001.gpucap"), 0);
  ASSERT_EQ(mkdirat(directory.fd(), "2.0000000000000001.gpucap", 0700), 0);
  ASSERT_EQ(mkfifoat(directory.fd(), "3.0000000000000001.gpucap", 0600), 0);
  for (const char* other : {"1.0000000000000001.gpucap", "2.0000000000000001.gpucap", "3.0000000000000001.gpucap"}) {
    EXPECT_EQ(request_limit(directory.fd(), other, -1, kGiB, &error_number), ControlError::kUnreadable) << other;
  }
  EXPECT_EQ(control_in(directory, name).sequence, 0u);
  EXPECT_EQ(request_limit(directory.fd(), "no-such-file", -1, kGiB, &error_number), ControlError::kCannotOpen);
  EXPECT_EQ(error_number, ENOENT);
}

TEST_F(ControlTest, AFileWithASecondNameIsLeftAlone) {
  ASSERT_EQ(linkat(directory.fd(), name.c_str(), directory.fd(), "1.0000000000000001.gpucap", 0), 0);
  EXPECT_EQ(request(-1, kGiB), ControlError::kUnreadable);
}

TEST_F(ControlTest, OnlyTheOwnerAndRootMay) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  ASSERT_EQ(chmod(directory.path().c_str(), 0755), 0);
  for (const mode_t mode : {0600, 0666}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    Child other([&](const Child::Channel& channel) {
      int ignored = 0;
      if (setgid(65534) != 0 || setuid(65534) != 0) channel.say('?');
      const ControlError error = request_limit(directory.fd(), name.c_str(), -1, kGiB, &ignored);
      channel.say(error == ControlError::kNotOwner ? 'n' : 'x');
    });
    EXPECT_EQ(other.hear(), 'n') << std::oct << mode;
  }
  EXPECT_EQ(control_in(directory, name).sequence, 0u);
}

}  // namespace
}  // namespace gpucap::wire
