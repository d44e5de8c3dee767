// Hostile bytes never reach a terminal or a JSON text.
#include <gtest/gtest.h>

#include "wire/segment_reader.h"

using gpucap::wire::clean_text;

TEST(CleanText, OrdinaryTextStays) {
  EXPECT_EQ(clean_text("python train.py --lr 1e-3"), "python train.py --lr 1e-3");
  EXPECT_EQ(clean_text("/home/j\xc3\xbcrgen/\xe8\xa8\x93\xe7\xb7\xb4.py \xf0\x9f\x9a\x80"),
            "/home/j\xc3\xbcrgen/\xe8\xa8\x93\xe7\xb7\xb4.py \xf0\x9f\x9a\x80");
}

TEST(CleanText, EndsAtTheFirstNul) { EXPECT_EQ(clean_text(std::string_view("ab\0cd", 5)), "ab"); }

TEST(CleanText, WhatATerminalWouldObeyIsReplaced) {
  EXPECT_EQ(clean_text("\x1b[2Jx"), "?[2Jx");
  EXPECT_EQ(clean_text("a\nb\tc\rd\x7f"), "a?b?c?d?");
  EXPECT_EQ(clean_text("\xc2\x9b"
                       "31m"),
            "?31m")
      << "the one-character form of ESC [";
  EXPECT_EQ(clean_text("\xe2\x80\xae"
                       "gpj.exe"),
            "?gpj.exe")
      << "right-to-left override";
  EXPECT_EQ(clean_text("\xe2\x80\xa8x"), "?x") << "line separator";
}

TEST(CleanText, WhatIsNotUtf8IsReplacedByteByByte) {
  EXPECT_EQ(clean_text("\xff\xfe"), "??");
  EXPECT_EQ(clean_text("a\xc3"), "a?") << "cut in the middle";
  EXPECT_EQ(clean_text("\xc0\xaf"), "??") << "overlong";
  EXPECT_EQ(clean_text("\xed\xa0\x80"), "???") << "surrogate";
  EXPECT_EQ(clean_text("\xf5\x80\x80\x80"), "????") << "past U+10FFFF";
}
