// A damaged policy file is never laxer than the undamaged one, as far as damage can be noticed. Precisely:
//
//   Let F be a text in which nothing is wrong, and G what one byte put in, taken out or replaced makes of it. If
//   reading G reports a problem on a line that the edit touched, then for every asker and every device G's limit is at
//   most F's, the asker's group is F's or G is closed to the asker, its mode is as strict as F's or G is closed, and
//   the budget of every group is at most F's.
//
// An edit that leaves a line which can be read (another number, a '#' before it) cannot be noticed by anybody. Every
// edit of a file that uses all there is in the grammar is tried with telling bytes, and random files with random ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/core/policy_asked.h"

namespace gpucap::core {
namespace {

const PolicyAsker kAskers[] = {kAlice, kBob, {1003, "carol"}, {1004, "dave"}, kNobodyKnows, {0, "root"}};
const char* const kGroups[] = {"team", "all", "x", "other"};
const char* const kCards[] = {kCardA, kCardB};

struct Answers {
  struct Of {
    uint64_t limit[2];
    std::string group;
    OnLimitValue on_limit;
    bool closed;
  };
  std::vector<Of> askers;
  uint64_t groups[4][2];
  std::vector<int> problem_lines;
  std::vector<int> contradiction_lines;  // some of them
};

// One of each, since they are large.
struct Room {
  Policy policy;
  GroupPolicy group;
};

Answers ask(const std::string& text) {
  static const std::unique_ptr<Room> room = std::make_unique<Room>();
  Answers answers;
  for (const PolicyAsker& asker : kAskers) {
    read_policy(text, asker, &room->policy);
    Answers::Of of{{}, room->policy.group, room->policy.on_limit_with(nullptr), room->policy.closed};
    for (int card = 0; card < 2; ++card) of.limit[card] = room->policy.for_device(0, kCards[card], kCardBytes);
    answers.askers.push_back(of);
    for (int i = 0; i < room->policy.problem_count; ++i) {
      const PolicyProblem& problem = room->policy.problems[i];
      answers.problem_lines.push_back(problem.line);
      if (std::string_view(problem.reason) == "is a second group for one user")
        answers.contradiction_lines.push_back(problem.line);
    }
  }
  for (int group = 0; group < 4; ++group) {
    read_group_policy(text, kGroups[group], &room->group);
    for (int card = 0; card < 2; ++card)
      answers.groups[group][card] = room->group.for_device(0, kCards[card], kCardBytes);
  }
  return answers;
}

bool laxer(const OnLimitValue& a, const OnLimitValue& b) {
  if (a.mode != b.mode) return a.mode > b.mode;
  return b.wait_ns != 0 && (a.wait_ns == 0 || a.wait_ns > b.wait_ns);
}

// Empty, or where G is laxer than F.
std::string where_laxer(const Answers& f, const Answers& g, bool with_groups) {
  for (size_t i = 0; i < f.askers.size(); ++i) {
    const std::string who = "uid " + std::to_string(kAskers[i].uid);
    for (int card = 0; card < 2; ++card)
      if (g.askers[i].limit[card] > f.askers[i].limit[card]) return "the limit of " + who;
    if (g.askers[i].closed) continue;
    if (g.askers[i].group != f.askers[i].group) return "the group of " + who;
    if (laxer(g.askers[i].on_limit, f.askers[i].on_limit)) return "the mode of " + who;
  }
  for (int group = 0; with_groups && group < 4; ++group)
    for (int card = 0; card < 2; ++card)
      if (g.groups[group][card] > f.groups[group][card]) return std::string("the budget of group ") + kGroups[group];
  return "";
}

struct Tried {
  int noticed = 0;
  int unnoticed = 0;
};

// The edit at `at`: 0 replaces, 1 inserts before, 2 removes.
void try_edit(const std::string& text, const Answers& before, size_t at, int kind, char byte, Tried* tried) {
  std::string damaged = text;
  if (kind == 0) damaged[at] = byte;
  if (kind == 1) damaged.insert(at, 1, byte);
  if (kind == 2) damaged.erase(at, 1);
  const Answers after = ask(damaged);
  const int line = static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(at), '\n')) + 1;
  const auto touched = [&](const std::vector<int>& numbers) {
    return std::any_of(numbers.begin(), numbers.end(), [&](int number) {
      // A new line end makes two lines of one; both were touched.
      return number == line || (kind != 2 && byte == '\n' && number == line + 1);
    });
  };
  const bool noticed = touched(after.problem_lines);
  ++(noticed ? tried->noticed : tried->unnoticed);
  if (!noticed) return;
  const std::string laxer_at = where_laxer(before, after, !touched(after.contradiction_lines));
  ASSERT_EQ(laxer_at, "") << "edit " << kind << " with byte " << static_cast<int>(byte) << " at " << at << "; before:\n"
                          << text << "\nafter:\n"
                          << damaged;
}

const char* const kEverything =
    "# A comment.\n"
    "limit = 8G   # for all\n"
    "on_limit = wait:30s\n"
    "group = all\n"
    "group_limit = GPU-a1b2=30G,*=40G\n"
    "\n"
    "[user alice]\n"
    "limit = 10G\n"
    "group = team\n"
    "[user 1001]\n"
    "group = team\n"
    "group_limit = 14G\n"
    "on_limit = deny\n"
    "[ user carol ]\n"
    "limit = none\n"
    "group = none\n"
    "; Another comment.\n"
    "[user bob]\n"
    "limit = 5G\n"
    "[default]\n"
    "limit = 50%\n"
    "[group team]\n"
    "limit = 16G\n"
    "[group other]\r\n"
    "limit = 1G\n"
    "[user dave]\n"
    "limit = 1G";

TEST(PolicyDamage, EveryOneByteEditOfAFullFileIsNeverLaxerOnceNoticed) {
  const std::string text = kEverything;
  const Answers before = ask(text);
  ASSERT_TRUE(before.problem_lines.empty());
  Tried tried;
  for (size_t at = 0; at < text.size(); ++at) {
    for (const char byte : {'\n', '\r', ' ', '=', '[', ']', '#', ';', '_', ',', 'x', '0', '\0', '\x80'}) {
      try_edit(text, before, at, 0, byte, &tried);
      try_edit(text, before, at, 1, byte, &tried);
      if (HasFatalFailure()) return;
    }
    try_edit(text, before, at, 2, 0, &tried);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(tried.noticed, 5 * tried.unnoticed / 2) << "most damage is noticed";
  RecordProperty("noticed", tried.noticed);
  RecordProperty("unnoticed", tried.unnoticed);
}

unsigned roll(std::mt19937* random, unsigned sides) { return static_cast<unsigned>((*random)() % sides); }

const char* pick(std::mt19937* random, std::initializer_list<const char*> texts) {
  return texts.begin()[roll(random, static_cast<unsigned>(texts.size()))];
}

std::string random_file(std::mt19937* random) {
  std::string text;
  bool in_group_section = false, has_group = false;
  const unsigned lines = 1 + roll(random, 14);
  for (unsigned i = 0; i < lines; ++i) {
    const unsigned what = roll(random, 9);
    if (what <= 2) {
      static constexpr const char* kWords[] = {"[default]", "[user ", "[group "};
      text += kWords[what];
      if (what == 1) text += std::string(pick(random, {"alice", "bob", "carol", "1000", "1003"})) + "]";
      if (what == 2) text += std::string(pick(random, {"team", "all", "other"})) + "]";
      in_group_section = what == 2;
      has_group = false;
    } else if (what == 3) {
      text += pick(random, {"# text", "; [user bob]", "", "  # limit = 4G"});
    } else if (in_group_section || what <= 5) {
      text += std::string("limit = ") + pick(random, {"4G", "9G", "none", "*=3G", "GPU-a1b2=2G,*=7G", "25%"});
      text += pick(random, {"", " # [x] group = a"});
    } else if (what == 6) {
      text += std::string("on_limit = ") + pick(random, {"deny", "wait", "wait:5s", "observe"});
    } else if (!has_group) {
      const std::string group = pick(random, {"team", "all", "none"});
      text += "group = " + group;
      has_group = group != "none";
    } else {
      text += std::string("group_limit=") + pick(random, {"6G", "8G", "none", "*=5G"});
    }
    text += pick(random, {"\n", "\n", "\r\n", "\n\n"});
  }
  return text;
}

TEST(PolicyDamage, RandomEditsOfRandomFilesAreNeverLaxerOnceNoticed) {
  std::mt19937 random(20240607);
  Tried tried;
  int clean = 0;
  for (int round = 0; round < 1200; ++round) {
    const std::string text = random_file(&random);
    const Answers before = ask(text);
    if (!before.problem_lines.empty()) continue;
    ++clean;
    for (int edit = 0; edit < 15; ++edit) {
      const char telling[] = "\n\r =[]#_,a0";
      const char byte = random() % 2 ? telling[random() % 11] : static_cast<char>(random());
      try_edit(text, before, random() % text.size(), static_cast<int>(random() % 3), byte, &tried);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(clean, 600);
  EXPECT_GT(tried.noticed, 4000);
}

TEST(PolicyDamage, NoTextAtAllIsTooOddToBeRead) {
  std::mt19937 random(7);
  const std::string seed = kEverything;
  int closed = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text = round % 4 == 0 ? std::string() : seed;
    const unsigned edits = 1 + roll(&random, 40);
    for (unsigned i = 0; i < edits; ++i) {
      const size_t at = text.empty() ? 0 : random() % text.size();
      const size_t length = text.empty() ? 0 : std::min<size_t>(random() % 30, text.size() - at);
      if (random() % 3 == 0)
        text.insert(at, seed.substr(random() % seed.size(), random() % 30));
      else if (random() % 2)
        text.erase(at, length);
      else
        text.insert(at, 1, static_cast<char>(random()));
    }
    const Answers answers = ask(text);
    const std::vector<int>& lines = answers.problem_lines;
    const auto ends = std::count(text.begin(), text.end(), '\n') + 1;
    for (const int line : lines) ASSERT_TRUE(line >= 1 && line <= ends) << text;
    closed += answers.askers[0].closed;
  }
  EXPECT_GT(closed, 1000);
}

}  // namespace
}  // namespace gpucap::core
