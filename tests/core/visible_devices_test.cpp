#include "shim/core/visible_devices.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpucap::core {
namespace {

constexpr std::string_view kMachine[] = {
    "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6",
    "GPU-1af00000-0000-4000-8000-000000000001",
    "GPU-1af11111-0000-4000-8000-000000000002",
    "GPU-c0ffee00-0000-4000-8000-000000000003",
};
constexpr std::string_view kInstance = "MIG-5a1b2c3d-0000-5000-8000-000000000009";

// The ordinals of the machine's four devices.
std::vector<int> ordinals(const char* visible) {
  std::vector<int> result;
  for (const std::string_view device : kMachine) result.push_back(visible_ordinal(kMachine, device, visible));
  return result;
}

using Ordinals = std::vector<int>;
constexpr int kNo = kNotVisible;

TEST(VisibleDevices, WithoutTheVariableTheOrderIsTheMachines) { EXPECT_EQ(ordinals(nullptr), (Ordinals{0, 1, 2, 3})); }

TEST(VisibleDevices, AnEmptyTextShowsNothing) {
  EXPECT_EQ(ordinals(""), (Ordinals{kNo, kNo, kNo, kNo}));
  EXPECT_EQ(ordinals("  "), (Ordinals{kNo, kNo, kNo, kNo}));
}

TEST(VisibleDevices, NumbersCountInTheOrderOfTheList) {
  EXPECT_EQ(ordinals("1"), (Ordinals{kNo, 0, kNo, kNo}));
  EXPECT_EQ(ordinals("2,0"), (Ordinals{1, kNo, 0, kNo}));
  EXPECT_EQ(ordinals(" 3 , 1 "), (Ordinals{kNo, 1, kNo, 0}));
}

TEST(VisibleDevices, WhatFollowsAWrongEntryIsInvisible) {
  EXPECT_EQ(ordinals("0,-1,1"), (Ordinals{0, kNo, kNo, kNo}));
  EXPECT_EQ(ordinals("0,4,1"), (Ordinals{0, kNo, kNo, kNo}));
  EXPECT_EQ(ordinals("0,,1"), (Ordinals{0, kNo, kNo, kNo}));
  EXPECT_EQ(ordinals("99999999999999999999999,0"), (Ordinals{kNo, kNo, kNo, kNo}));
  EXPECT_EQ(ordinals("none"), (Ordinals{kNo, kNo, kNo, kNo}));
  EXPECT_EQ(ordinals("1x,0"), (Ordinals{kNo, kNo, kNo, kNo}));
}

TEST(VisibleDevices, ATrailingCommaChangesNothing) { EXPECT_EQ(ordinals("1,0,"), (Ordinals{1, 0, kNo, kNo})); }

TEST(VisibleDevices, UuidsMayBeWholeOrCutShort) {
  EXPECT_EQ(ordinals("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"), (Ordinals{0, kNo, kNo, kNo}));
  EXPECT_EQ(ordinals("GPU-c0,GPU-8932"), (Ordinals{1, kNo, kNo, 0}));
  EXPECT_EQ(ordinals("gpu-C0FFEE,1"), (Ordinals{kNo, 1, kNo, 0}));
}

TEST(VisibleDevices, ABeginningThatFitsTwoOrNoDevicesIsWrong) {
  EXPECT_EQ(ordinals("GPU-1af"), (Ordinals{kNo, kNo, kNo, kNo}));
  EXPECT_EQ(ordinals("GPU-1af1"), (Ordinals{kNo, kNo, 0, kNo}));
  EXPECT_EQ(ordinals("GPU-dead,0"), (Ordinals{kNo, kNo, kNo, kNo}));
  EXPECT_EQ(ordinals("GPU-"), (Ordinals{kNo, kNo, kNo, kNo}));
}

TEST(VisibleDevices, ADeviceNamedTwiceHidesEverything) {
  EXPECT_EQ(ordinals("0,0"), (Ordinals{kNo, kNo, kNo, kNo}));
  EXPECT_EQ(ordinals("1,0,GPU-8932"), (Ordinals{kNo, kNo, kNo, kNo}));
  EXPECT_EQ(ordinals("0,9,0"), (Ordinals{0, kNo, kNo, kNo})) << "the list had ended before the second time";
}

TEST(VisibleDevices, AMigInstanceIsVisibleByItsUuid) {
  const std::string whole(kInstance);
  EXPECT_EQ(visible_ordinal(kMachine, kInstance, whole.c_str()), 0);
  EXPECT_EQ(visible_ordinal(kMachine, kInstance, "MIG-5a1b"), 0);
  EXPECT_EQ(visible_ordinal(kMachine, kInstance, "MIG-77777777-0000-5000-8000-000000000001"), kNo);
  EXPECT_EQ(visible_ordinal(kMachine, kInstance, "0"), kNo);
  EXPECT_EQ(visible_ordinal(kMachine, kInstance, ""), kNo);
  EXPECT_EQ(visible_ordinal(kMachine, kInstance, nullptr), 0);
  EXPECT_EQ(ordinals(whole.c_str()), (Ordinals{kNo, kNo, kNo, kNo})) << "its card is not what the program sees";
}

TEST(VisibleDevices, AnOldStyleMigNameIsComparedAsText) {
  constexpr std::string_view kOld = "MIG-GPU-8932f937-d72c-4106-c12f-20bd9faed9f6/1/2";
  EXPECT_EQ(visible_ordinal(kMachine, kOld, "MIG-GPU-8932f937-d72c-4106-c12f-20bd9faed9f6/1/2"), 0);
  EXPECT_EQ(visible_ordinal(kMachine, kOld, "MIG-GPU-8932f937-d72c-4106-c12f-20bd9faed9f6/2/0"), kNo);
}

TEST(VisibleDevices, ADeviceThatTheMachineDoesNotHaveIsNotVisible) {
  EXPECT_EQ(visible_ordinal(kMachine, "GPU-00000000-0000-4000-8000-000000000000", nullptr), kNo);
  EXPECT_EQ(visible_ordinal(kMachine, "", nullptr), kNo);
  EXPECT_EQ(visible_ordinal({}, kMachine[0], "0"), kNo);
}

}  // namespace
}  // namespace gpucap::core
