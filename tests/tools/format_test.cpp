// Figures as people read them, and text cut to a width.
#include "tools/common/format.h"

#include <gtest/gtest.h>

#include "tools/common/names.h"
#include "tools/common/text_width.h"

namespace gpucap::tools {
namespace {

TEST(HumanBytes, HasThreeDigitsAndTheNearestUnit) {
  const struct {
    uint64_t bytes;
    const char* text;
  } kCases[] = {{0, "0 B"},
                {512, "512 B"},
                {999, "999 B"},
                {1000, "0.98 KiB"},
                {1024, "1.00 KiB"},
                {uint64_t{4} << 30, "4.00 GiB"},
                {3446711583, "3.21 GiB"},
                {543162368, "518 MiB"},
                {(uint64_t{1} << 30) - 1, "1.00 GiB"},
                {(uint64_t{1} << 40) - 1, "1.00 TiB"},
                {uint64_t{140} << 30, "140 GiB"},
                {10726932480, "9.99 GiB"},
                {10737418239, "10.0 GiB"},
                {UINT64_MAX, "16.0 EiB"}};
  for (const auto& entry : kCases) EXPECT_EQ(human_bytes(entry.bytes), entry.text) << entry.bytes;
}

TEST(HumanBytes, KeepsTheSign) {
  EXPECT_EQ(human_bytes(int64_t{-96}), "-96 B");
  EXPECT_EQ(human_bytes(-(int64_t{1} << 21)), "-2.00 MiB");
  EXPECT_EQ(human_bytes(INT64_MIN), "-8.00 EiB");
}

TEST(HumanDuration, UsesTwoUnits) {
  EXPECT_EQ(human_duration(59), "59s");
  EXPECT_EQ(human_duration(184), "3m04s");
  EXPECT_EQ(human_duration(2 * 3600 + 5 * 60 + 59), "2h05m");
  EXPECT_EQ(human_duration(4 * 86400 + 7 * 3600), "4d07h");
}

TEST(Percent, SaysHundredOnlyWhenTheCapIsReached) {
  EXPECT_EQ(percent_of(0, 100), "0");
  EXPECT_EQ(percent_of(999, 1000), "99");
  EXPECT_EQ(percent_of(UINT64_MAX - 1, UINT64_MAX), "99");
  EXPECT_EQ(percent_of(1000, 1000), "100");
  EXPECT_EQ(percent_of(1500, 1000), "150");
  EXPECT_EQ(percent_of(5, 0), "-");
  EXPECT_EQ(percent_of(UINT64_MAX, 1), ">9999");
}

TEST(LocalTime, HasMicroseconds) {
  setenv("TZ", "UTC", 1);
  tzset();
  EXPECT_EQ(local_time(uint64_t{1769862896} * 1000000000 + 123456789), "2026-01-31 12:34:56.123456");
  static_cast<void>(local_time(UINT64_MAX));
}

TEST(Names, UnknownNumbersStayNumbers) {
  EXPECT_EQ(result_name(0), "CUDA_SUCCESS");
  EXPECT_EQ(result_name(2), "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(result_name(-7), "-7");
  EXPECT_EQ(operation_name(3), "refuse");
  EXPECT_EQ(operation_name(99), "99");
  EXPECT_EQ(kind_name(4), "vmm");
}

TEST(TextWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width("train.py"), 8u);
  EXPECT_EQ(display_width("j\xc3\xbcrgen"), 6u);
  EXPECT_EQ(display_width("\xe8\xa8\x93\xe7\xb7\xb4"), 4u);
}

TEST(TextWidth, CutsToFitAndSaysSo) {
  EXPECT_EQ(fit("python", 6), "python");
  EXPECT_EQ(fit("python", 5), "pyth~");
  EXPECT_EQ(fit("python", 0), "");
  EXPECT_EQ(fit("\xe8\xa8\x93\xe7\xb7\xb4", 3), "\xe8\xa8\x93~");
  EXPECT_EQ(fit("\xe8\xa8\x93\xe7\xb7\xb4", 2), "~") << "half a wide character cannot be shown";
}

}  // namespace
}  // namespace gpucap::tools
