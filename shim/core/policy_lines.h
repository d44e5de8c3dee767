// The lines of a policy file, one at a time: what each one is, in which section it stands, and what is wrong with it.
// Knows the shape of the file (sections, keys, comments) and nothing of the values. Called by the readers of policies
// alone. Pure: views into the caller's text, no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpucap::core {

enum class PolicySection : uint8_t { kDefault, kUser, kGroup, kUnreadable };
enum class PolicyKey : uint8_t { kLimit, kOnLimit, kGroup, kGroupLimit };
inline constexpr int kPolicyKeys = 4;

struct PolicyLine {
  enum class Kind : uint8_t { kNothing, kHeader, kEntry, kBad };
  Kind kind = Kind::kNothing;
  int number = 0;                   // 1-based
  std::string_view text;            // the whole line
  PolicySection section = {};       // where the line stands; a header stands in the section that it opens
  std::string_view section_name;    // of kUser and kGroup
  bool opens_section = false;       // a header, readable or not
  PolicyKey key = {};               // of kEntry
  std::string_view value;           // of kEntry: without blanks around it and without the comment
  std::string_view part;            // of kBad: what is wrong, a part of `text`
  const char* reason = nullptr;     // of kBad
  bool may_be_any_section = false;  // of kBad: it may have been, or have swallowed, the header of any section
};

class PolicyLines {
 public:
  explicit PolicyLines(std::string_view text);
  bool next(PolicyLine* line);

 private:
  void read_header(std::string_view text, PolicyLine* line);
  void read_entry(std::string_view text, PolicyLine* line);

  std::string_view rest_;
  int number_ = 0;
  PolicySection section_ = PolicySection::kDefault;
  std::string_view section_name_;
};

// Lines that were run together by an edit make one whose value cannot be read. With a bracket in it, it may have
// swallowed a header; with a key's name and '=', an entry of any key.
bool may_hide_header(std::string_view text);
bool may_hide_entry(std::string_view value);

// "none", in any letter case.
bool is_none(std::string_view value);

// The number that a name made of digits alone stands for; false where it has anything else or does not fit.
bool parse_uid(std::string_view name, uint32_t* uid);

}  // namespace gpucap::core
