// Cuts a policy file into lines and tells what each is. Where a line is damaged in a way that may have hidden the
// header of a section, it says so: the lines that follow it may then belong to somebody else.
#include "shim/core/policy_lines.h"

#include "shim/core/group_name.h"
#include "shim/core/policy.h"
#include "shim/core/text.h"

namespace gpucap::core {
namespace {

constexpr size_t kMaxLine = 1000;
constexpr size_t kMaxUserName = 255;

// A line's own blanks: others within it are damage.
bool is_blank_in_line(char c) { return c == ' ' || c == '\t'; }
std::string_view trim_line(std::string_view text) { return trim(text, is_blank_in_line); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A '#' starts a comment only after a blank, so that it can stand inside a word.
std::string_view without_comment(std::string_view text) {
  for (size_t i = 1; i < text.size(); ++i)
    if (text[i] == '#' && is_blank_in_line(text[i - 1])) return text.substr(0, i);
  return text;
}

// As account tools and directory services make them. Blanks, commas, wildcards and '%' are left out on purpose: they
// would be read as "several users" by whoever writes them, and as a strange name by us.
bool is_user_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxUserName) return false;
  for (const char c : name) {
    const char l = lower(c);
    const bool plain = (l >= 'a' && l <= 'z') || is_digit(c) || static_cast<unsigned char>(c) >= 0x80;
    if (!plain && std::string_view("._-+@$\\").find(c) == std::string_view::npos) return false;
  }
  return true;
}

bool is_word(std::string_view text) {
  for (const char c : text) {
    const char l = lower(c);
    if (!(l >= 'a' && l <= 'z') && !is_digit(c) && c != '_' && c != '-' && c != '.' && !is_blank_in_line(c))
      return false;
  }
  return !text.empty();
}

void make_bad(PolicyLine* line, std::string_view part, const char* reason, bool any_section) {
  line->kind = PolicyLine::Kind::kBad;
  line->part = part;
  line->reason = reason;
  line->may_be_any_section = any_section;
}

bool find_key(std::string_view word, PolicyKey* key) {
  static constexpr std::string_view kNames[kPolicyKeys] = {"limit", "on_limit", "group", "group_limit"};
  for (int i = 0; i < kPolicyKeys; ++i) {
    if (!equal_no_case(word, kNames[i])) continue;
    *key = static_cast<PolicyKey>(i);
    return true;
  }
  return false;
}

}  // namespace

bool is_none(std::string_view value) { return equal_no_case(value, "none"); }

bool may_hide_header(std::string_view text) { return text.find_first_of("[]") != std::string_view::npos; }

bool may_hide_entry(std::string_view value) {
  for (size_t at = value.find('='); at != std::string_view::npos; at = value.find('=', at + 1)) {
    const std::string_view before = trim_line(value.substr(0, at));
    if (before.size() < 5) continue;
    const std::string_view end = before.substr(before.size() - 5);
    if (equal_no_case(end, "limit") || equal_no_case(end, "group")) return true;
  }
  return false;
}

bool parse_uid(std::string_view name, uint32_t* uid) {
  uint64_t number = 0;
  for (const char c : name) {
    if (!is_digit(c)) return false;
    number = number * 10 + static_cast<uint64_t>(c - '0');
    if (number > UINT32_MAX) return false;
  }
  *uid = static_cast<uint32_t>(number);
  return !name.empty();
}

PolicyLines::PolicyLines(std::string_view text) : rest_(text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
}

bool PolicyLines::next(PolicyLine* line) {
  if (rest_.empty()) return false;
  *line = PolicyLine();
  line->number = ++number_;
  if (number_ == 1 && rest_.size() > kMaxPolicyBytes) {
    make_bad(line, rest_.substr(0, 0), "the file is larger than 1 MiB", true);
    rest_ = {};
    return true;
  }
  const size_t end = rest_.find('\n');
  std::string_view text = rest_.substr(0, end);
  rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  line->text = text;
  line->section = section_;
  line->section_name = section_name_;

  // A stray carriage return is a line end to whoever wrote it; a comment would hide what comes after it.
  const size_t odd = text.find_first_of(std::string_view("\0\r", 2));
  if (odd != std::string_view::npos) {
    make_bad(line, text.substr(odd, 1), text[odd] == '\r' ? "is a carriage return inside a line" : "is a NUL byte",
             true);
    return true;
  }
  if (text.size() > kMaxLine) {
    make_bad(line, text, "is longer than 1000 bytes", true);
    return true;
  }
  text = trim_line(text);
  if (text.empty() || text.front() == '#' || text.front() == ';') return true;
  text = trim_line(without_comment(text));
  if (text.front() == '[') {
    read_header(text, line);
    section_ = line->section;
    section_name_ = line->section_name;
  } else {
    read_entry(text, line);
  }
  return true;
}

void PolicyLines::read_header(std::string_view text, PolicyLine* line) {
  line->opens_section = true;
  line->section = PolicySection::kUnreadable;
  line->section_name = {};
  constexpr const char* kNotASection = "is not a section ([default], [user NAME], [user UID] or [group NAME])";
  if (!text.ends_with(']')) return make_bad(line, text, kNotASection, true);
  const std::string_view inside = trim_line(text.substr(1, text.size() - 2));
  size_t word_end = 0;
  while (word_end < inside.size() && !is_blank_in_line(inside[word_end])) ++word_end;
  const std::string_view word = inside.substr(0, word_end);
  const std::string_view name = trim_line(inside.substr(word_end));
  if (equal_no_case(word, "default") && name.empty()) {
    line->section = PolicySection::kDefault;
  } else if (equal_no_case(word, "user") && !name.empty()) {
    uint32_t uid = 0;
    const bool digits = name.find_first_not_of("0123456789") == std::string_view::npos;
    if (!is_user_name(name) || (digits && !parse_uid(name, &uid)))
      return make_bad(line, name, "is neither the name of one user nor a user id", true);
    line->section = PolicySection::kUser;
  } else if (equal_no_case(word, "group") && !name.empty()) {
    if (is_none(name)) return make_bad(line, name, "stands for \"no group\" and cannot be the name of one", true);
    if (!is_group_name(name)) return make_bad(line, name, kGroupNameReason, true);
    line->section = PolicySection::kGroup;
  } else {
    return make_bad(line, text, kNotASection, true);
  }
  line->kind = PolicyLine::Kind::kHeader;
  line->section_name = name;
}

void PolicyLines::read_entry(std::string_view text, PolicyLine* line) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return make_bad(line, text, "is neither a section nor KEY = VALUE", true);
  const std::string_view key = trim_line(text.substr(0, equals));
  if (!find_key(key, &line->key)) {
    return make_bad(line, key.empty() ? text : key, "is not a key (limit, on_limit, group, group_limit)",
                    !is_word(key) || may_hide_header(text));
  }
  if (line->section == PolicySection::kGroup && line->key != PolicyKey::kLimit)
    return make_bad(line, key, "is not a key of a [group] section (limit)", may_hide_header(text));
  line->kind = PolicyLine::Kind::kEntry;
  line->value = trim_line(text.substr(equals + 1));
}

}  // namespace gpucap::core
