// What keys do, and which rows they do it to: both pure.
#include <gtest/gtest.h>

#include <set>

#include "tests/tools/screen_model.h"
#include "tools/top/block_sizes.h"
#include "tools/top/keys_handler.h"
#include "tools/top/view_rows.h"

namespace gpucap::tools {
namespace {

class Keys : public testing::Test {
 protected:
  Command type(const std::string& text) {
    Command command;
    for (const char c : text) {
      const Key key = c == '\n'     ? Key{Key::Code::kEnter, "", 0}
                      : c == '\x1b' ? Key{Key::Code::kEscape, "", 0}
                                    : Key{Key::Code::kText, std::string(1, c), 0};
      command = handle_key(key, model_, 2, &state_);
    }
    return command;
  }
  Command press(Key::Code code, int function = 0) { return handle_key({code, "", function}, model_, 2, &state_); }
  std::vector<int> pids() const {
    std::vector<int> result;
    for (const ArrangedRow& row : arrange(model_, state_))
      result.push_back(row.index ? model_.rows[*row.index].pid : 0);
    return result;
  }
  int selected() const {
    const std::vector<ArrangedRow> rows = arrange(model_, state_);
    const auto at = selected_position(rows, model_, state_.selected_key);
    return at ? model_.rows[*rows[*at].index].pid : 0;
  }

  ScreenModel model_ = test_model();
  ViewState state_;
};

using Pids = std::vector<int>;

TEST_F(Keys, LargestUseComesFirstAndTheEndedLast) { EXPECT_EQ(pids(), (Pids{4711, 4712, 4800, 900})); }

TEST_F(Keys, EachSortIsReachedAndInverted) {
  type("N");
  EXPECT_EQ(pids(), (Pids{4711, 4712, 4800, 900}));
  type("I");
  EXPECT_EQ(pids(), (Pids{4800, 4712, 4711, 900})) << "the ended stay last";
  type("M");
  EXPECT_EQ(pids(), (Pids{4711, 4712, 4800, 900}));
  EXPECT_FALSE(state_.inverted);
  std::set<SortBy> seen;
  for (int i = 0; i < 12; ++i) {
    type(">");
    seen.insert(state_.sort);
  }
  EXPECT_EQ(seen.size(), 12u);
  EXPECT_EQ(state_.sort, SortBy::kLimit) << "round and back";
  type("<");
  EXPECT_EQ(state_.sort, SortBy::kUsed);
}

TEST_F(Keys, TheSelectionMovesAndStaysWithItsProcess) {
  EXPECT_EQ(selected(), 4711);
  press(Key::Code::kDown);
  EXPECT_EQ(selected(), 4712);
  type("NI");
  EXPECT_EQ(selected(), 4712);
  press(Key::Code::kEnd);
  EXPECT_EQ(selected(), 900);
  press(Key::Code::kDown);
  EXPECT_EQ(selected(), 900);
  press(Key::Code::kPageUp);
  EXPECT_EQ(selected(), 4712);
  press(Key::Code::kHome);
  EXPECT_EQ(selected(), 4800);
  press(Key::Code::kUp);
  EXPECT_EQ(selected(), 4800);
}

TEST_F(Keys, AProcessThatGoesLeavesTheFirstSelected) {
  press(Key::Code::kDown);
  std::erase_if(model_.rows, [](const ProcessRow& row) { return row.pid == 4712; });
  EXPECT_EQ(selected(), 4711);
  model_.rows.clear();
  EXPECT_EQ(selected(), 0);
  for (const char key : std::string("kl\nPt/x\n<>Ie")) type(std::string(1, key));
}

TEST_F(Keys, SearchJumpsAsItIsTyped) {
  type("/sim");
  EXPECT_EQ(selected(), 4800);
  EXPECT_EQ(state_.prompt, Prompt::kSearch);
  type("\n/TRAIN");
  EXPECT_EQ(selected(), 4711) << "around the end, in any letter case";
  type("\nn");
  EXPECT_EQ(selected(), 4712);
  type("n");
  EXPECT_EQ(selected(), 4711);
  type("/nowhere\nn");
  EXPECT_EQ(selected(), 4711);
  EXPECT_EQ(state_.message, "Not found: nowhere");
}

TEST_F(Keys, FilterShowsOnlyWhatMatchesUntilEscape) {
  type("\\team\n");
  EXPECT_EQ(pids(), (Pids{4711, 4712}));
  press(Key::Code::kFunction, 4);
  EXPECT_EQ(state_.input, "team");
  press(Key::Code::kBackspace);
  EXPECT_EQ(state_.filter, "tea");
  type("\x1b");
  EXPECT_EQ(pids().size(), 4u);
  type("x");
  EXPECT_EQ(pids(), (Pids{4711, 4712, 4800}));
}

TEST_F(Keys, BackspaceTakesAWholeCharacter) {
  type("/");
  handle_key({Key::Code::kText, "\xe8\xa8\x93", 0}, model_, 2, &state_);
  press(Key::Code::kBackspace);
  EXPECT_EQ(state_.input, "");
  press(Key::Code::kBackspace);
}

TEST_F(Keys, TheTreeHasParentsAboveTheirChildren) {
  type("t");
  EXPECT_EQ(pids(), (Pids{0, 4711, 4800, 4712, 900}));
  const auto rows = arrange(model_, state_);
  EXPECT_EQ(rows[0].heading, "parent 4700 torchrun");
  EXPECT_EQ(rows[0].heading_used_bytes, 45 * kTestGiB);
  EXPECT_EQ(rows[1].depth, 1u);
  EXPECT_EQ(rows[2].depth, 2u);
  press(Key::Code::kHome);
  EXPECT_EQ(selected(), 4711) << "headings are not stopped at";
  type("t");
  EXPECT_EQ(state_.tree, Tree::kGroup);
  EXPECT_EQ(pids(), (Pids{0, 4711, 4712, 0, 4800, 900}));
  EXPECT_EQ(arrange(model_, state_)[0].heading_limit_bytes, 128 * kTestGiB) << "of both cards";
  type("g");
  EXPECT_EQ(state_.tree, Tree::kFlat);
}

TEST_F(Keys, ATreeShowsEveryRowOnceAlsoWhenParentsGoInCircles) {
  model_.rows.clear();
  for (int pid = 1; pid <= 30; ++pid) {
    ProcessRow row = test_row(pid, static_cast<uint64_t>(pid), 100, "x");
    row.parent_pid = pid % 10 + 1;  // 1 to 10 in a circle, the others hang on it
    model_.rows.push_back(row);
  }
  state_.tree = Tree::kParent;
  std::multiset<int> seen;
  for (const int pid : pids()) seen.insert(pid);
  EXPECT_EQ(seen.size(), 30u);
  EXPECT_EQ(std::set<int>(seen.begin(), seen.end()).size(), 30u);
}

TEST_F(Keys, ASignalIsConfirmed) {
  EXPECT_EQ(type("k").kind, Command::Kind::kNone);
  EXPECT_EQ(type("\n").kind, Command::Kind::kNone);
  EXPECT_EQ(state_.prompt, Prompt::kConfirmSignal);
  const Command command = type("y");
  EXPECT_EQ(command.kind, Command::Kind::kSendSignal);
  EXPECT_EQ(command.signal, 15);
  EXPECT_EQ(command.key, model_.rows[3].key);
  for (const std::string no : {"n", "\n", "\x1b", " "}) {
    EXPECT_EQ(type("kkill\n" + no).kind, Command::Kind::kNone);
    EXPECT_EQ(state_.message, "Nothing was done");
  }
  EXPECT_EQ(type("k9\ny").signal, 9);
  EXPECT_EQ(type("kSIGINT\ny").signal, 2);
  type("kNONSENSE\n");
  EXPECT_EQ(state_.prompt, Prompt::kNone);
  EXPECT_EQ(state_.message, "No such signal: NONSENSE");
  EXPECT_EQ(type("k0\ny").kind, Command::Kind::kNone);
}

TEST_F(Keys, AQuestionStaysWithItsProcessWhenTheOrderChanges) {
  type("k\n");
  std::reverse(model_.rows.begin(), model_.rows.end());
  model_.rows[0].used_bytes = 0;
  EXPECT_EQ(type("y").key, test_model().details->key);
}

TEST_F(Keys, TheEndedGetNoSignalAndNoLimit) {
  press(Key::Code::kEnd);
  type("k");
  EXPECT_EQ(state_.prompt, Prompt::kNone);
  EXPECT_EQ(state_.message, "It has ended");
  type("l");
  EXPECT_EQ(state_.prompt, Prompt::kNone);
}

TEST_F(Keys, ALimitIsReadAndConfirmed) {
  const Command command = type("l8G\ny");
  EXPECT_EQ(command.kind, Command::Kind::kSetLimit);
  EXPECT_EQ(command.limit_bytes, 8 * kTestGiB);
  EXPECT_EQ(type("l50%\ny").limit_bytes, 141 * kTestGiB / 2);
  EXPECT_EQ(type("lnone\ny").limit_bytes, UINT64_MAX);
  EXPECT_EQ(type("l8G\nn").kind, Command::Kind::kNone);
  EXPECT_EQ(type("l\ny").kind, Command::Kind::kNone) << "nothing typed is nothing done";
  EXPECT_EQ(type("lmany\ny").kind, Command::Kind::kNone);
  EXPECT_TRUE(state_.message.empty()) << "y after the error is no answer";
}

TEST_F(Keys, WhoMayNotChangeALimitIsTold) {
  type("/sim\nl");
  EXPECT_EQ(state_.prompt, Prompt::kNone);
  EXPECT_TRUE(state_.message_is_trouble);
}

TEST_F(Keys, DetailsKeepTheirProcessAndScroll) {
  press(Key::Code::kDown);
  type("\n");
  EXPECT_EQ(state_.page, Page::kDetails);
  EXPECT_EQ(state_.selected_key, model_.rows[0].key);
  press(Key::Code::kDown);
  press(Key::Code::kPageDown);
  EXPECT_EQ(state_.first_line, 3u);
  press(Key::Code::kHome);
  EXPECT_EQ(state_.first_line, 0u);
  EXPECT_EQ(type("k\ny").key, model_.rows[0].key);
  type("\x1b");
  EXPECT_EQ(state_.page, Page::kTable);
}

TEST_F(Keys, QuitAndHelp) {
  EXPECT_EQ(type("?").kind, Command::Kind::kNone);
  EXPECT_EQ(state_.page, Page::kHelp);
  type("?");
  EXPECT_EQ(state_.page, Page::kTable);
  EXPECT_EQ(type("q").kind, Command::Kind::kQuit);
  EXPECT_EQ(press(Key::Code::kFunction, 10).kind, Command::Kind::kQuit);
  EXPECT_EQ(type("/q").kind, Command::Kind::kNone) << "typed, not pressed";
  EXPECT_EQ(type("\x03").kind, Command::Kind::kQuit);
}

gpucap_event event_of(uint8_t operation, uint64_t address, uint64_t bytes, uint8_t device = 0) {
  gpucap_event event = {};
  event.operation = operation;
  event.kind = GPUCAP_KIND_LINEAR;
  event.address = address;
  event.bytes = bytes;
  event.device = device;
  return event;
}

TEST(BlockSizes, ArePairedByAddressAndClassed) {
  BlockSizes sizes(0);
  sizes.feed(event_of(GPUCAP_OP_CHARGE, 0x1000, 4096));
  sizes.feed(event_of(GPUCAP_OP_CHARGE, 0x2000, 4097));
  sizes.feed(event_of(GPUCAP_OP_CHARGE, 0x3000, 16384));
  sizes.feed(event_of(GPUCAP_OP_CHARGE, 0x4000, 1 << 20));
  sizes.feed(event_of(GPUCAP_OP_CHARGE, 0x5000, 77, 1));
  sizes.feed(event_of(GPUCAP_OP_RELEASE, 0x4000, 2 << 20));
  sizes.feed(event_of(GPUCAP_OP_RELEASE, 0x9999, 5));
  const auto classes = sizes.classes();
  ASSERT_EQ(classes.size(), 2u);
  EXPECT_EQ(classes[0].at_most_bytes, 4096u);
  EXPECT_EQ(classes[0].blocks, 1u);
  EXPECT_EQ(classes[1].at_most_bytes, 16384u);
  EXPECT_EQ(classes[1].blocks, 2u);
  EXPECT_EQ(classes[1].bytes, 4097u + 16384u);
  EXPECT_EQ(sizes.blocks(), 3u);
}

TEST(BlockSizes, KeepsTheLatestRefusals) {
  BlockSizes sizes(0);
  for (uint64_t i = 0; i < 20; ++i) sizes.feed(event_of(GPUCAP_OP_REFUSE, 0, i));
  ASSERT_EQ(sizes.refusals().size(), 8u);
  EXPECT_EQ(sizes.refusals().front().bytes, 19u);
}

}  // namespace
}  // namespace gpucap::tools
