// Characters and words as the parsers of this folder read them: ASCII only, no locale. Pure, allocates nothing.
#pragma once

#include <cstddef>
#include <string_view>

namespace gpucap::core {

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
inline char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Without what is `blank` at both ends.
template <typename Predicate>
std::string_view trim(std::string_view text, Predicate blank) {
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}
inline std::string_view trim(std::string_view text) { return trim(text, is_blank); }

inline bool equal_no_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}

}  // namespace gpucap::core
