// What every fuzz entry gives: one function that takes any bytes and may not be harmed by them, and texts to start
// from. Two programs are made of each entry: a libFuzzer target, and a replay that any compiler can build (replay.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

// The entry. Aborts where something that must always hold does not.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes);

namespace gpucap::fuzz {

std::vector<std::string> seeds();
// Pieces that mutations put in, beside random bytes.
std::vector<std::string> pieces();

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

// A part of a message: ended, and fit for a terminal.
template <size_t kBytes>
void require_shown(const char (&part)[kBytes], const char* what) {
  const std::string_view all(part, kBytes);
  const std::string_view text = all.substr(0, all.find('\0'));
  require(text.size() < kBytes, what);
  for (const char c : text) require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, what);
}

inline std::string_view text_of(const uint8_t* data, size_t bytes) {
  return {static_cast<const char*>(static_cast<const void*>(data)), bytes};
}

}  // namespace gpucap::fuzz
