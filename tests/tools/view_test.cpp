// The screen as a function of a model: compared with stored screens (tests/tools/screens), and by what must hold at
// every size. After a change that is meant, GPUCAP_UPDATE_SCREENS=1 writes the stored ones anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/tools/screen_model.h"
#include "tools/common/text_width.h"
#include "tools/top/view_parts.h"
#include "tools/top/view_screen.h"

namespace gpucap::tools {
namespace {

void expect_stored(const std::string& name, const Frame& frame) {
  const std::string path = std::string(GPUCAP_TEST_SCREENS) + "/" + name + ".txt";
  const std::string text = plain_text(frame);
  if (std::getenv("GPUCAP_UPDATE_SCREENS") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream file(path);
  std::stringstream stored;
  stored << file.rdbuf();
  EXPECT_EQ(text, stored.str()) << path;
}

Frame screen(const ScreenModel& model, ViewState state, ScreenSize size) {
  scroll_into_sight(model, size, &state);
  return compose_screen(model, state, size);
}

bool has_style(const StyledLine& line, const std::string& text, Style style) {
  for (const Span& span : line) {
    if (span.style == style && span.text.find(text) != std::string::npos) return true;
  }
  return false;
}

const StyledLine* line_with(const Frame& frame, const std::string& text) {
  for (const StyledLine& line : frame.lines) {
    if (plain_text(line).find(text) != std::string::npos) return &line;
  }
  return nullptr;
}

ScreenModel crowded_model() {
  ScreenModel model = test_model();
  model.cards.clear();
  for (uint32_t i = 0; i < 8; ++i) model.cards.push_back(test_card(i, (i + 1) * 10 * kTestGiB, i * kTestGiB));
  model.rows.clear();
  for (int i = 0; i < 200; ++i) {
    ProcessRow row = test_row(1000 + i, static_cast<uint64_t>(i) * kTestGiB / 4, 64 * kTestGiB, "python worker.py");
    row.card = static_cast<uint32_t>(i % 8);
    model.rows.push_back(row);
  }
  return model;
}

TEST(StoredScreens, TheTableAt80By24) { expect_stored("table-80x24", screen(test_model(), {}, {80, 24})); }

TEST(StoredScreens, TheTableOnAWideTerminal) { expect_stored("table-132x30", screen(test_model(), {}, {132, 30})); }

TEST(StoredScreens, TheTableInAscii) {
  ViewState state;
  state.ascii = true;
  const Frame frame = screen(test_model(), state, {100, 24});
  expect_stored("table-ascii", frame);
  for (const char c : plain_text(frame)) EXPECT_LT(static_cast<unsigned char>(c), 0x80);
}

TEST(StoredScreens, ATreeByParent) {
  ViewState state;
  state.tree = Tree::kParent;
  expect_stored("tree-parent", screen(test_model(), state, {100, 24}));
}

TEST(StoredScreens, ATreeByGroup) {
  ViewState state;
  state.tree = Tree::kGroup;
  expect_stored("tree-group", screen(test_model(), state, {100, 24}));
}

TEST(StoredScreens, TheDetails) {
  ViewState state;
  state.page = Page::kDetails;
  state.selected_key = test_model().details->key;
  expect_stored("details", screen(test_model(), state, {80, 36}));
}

TEST(StoredScreens, TheHelp) {
  ViewState state;
  state.page = Page::kHelp;
  expect_stored("help", screen(test_model(), state, {84, 24}));
}

TEST(StoredScreens, EightCardsAnd200ProcessesAt80By24) {
  expect_stored("crowded-80x24", screen(crowded_model(), {}, {80, 24}));
}

TEST(StoredScreens, NothingToShow) {
  ScreenModel model;
  model.time = "12:34:56";
  model.advice = test_model().advice;
  expect_stored("empty", screen(model, {}, {80, 12}));
}

TEST(Screen, FitsEverySizeOnEveryPageWithEveryPrompt) {
  const ScreenModel empty;
  const ScreenModel full = test_model();
  const ScreenModel crowded = crowded_model();
  for (const ScreenModel* model : {&empty, &full, &crowded}) {
    for (const Page page : {Page::kTable, Page::kDetails, Page::kHelp}) {
      for (const Prompt prompt :
           {Prompt::kNone, Prompt::kSearch, Prompt::kSignal, Prompt::kConfirmSignal, Prompt::kConfirmLimit}) {
        for (const bool ascii : {false, true}) {
          // Many rows change nothing about prompts; they only take time.
          if (model == &crowded && (ascii || prompt != Prompt::kNone)) continue;
          ViewState state;
          state.page = page;
          state.prompt = prompt;
          state.ascii = ascii;
          state.input = "what is being typed";
          state.selected_key = state.target_key = full.details->key;
          for (size_t columns = 1; columns < 150; columns += columns < 16 ? 3 : 17) {
            for (size_t lines = 1; lines < 40; lines += lines < 8 ? 1 : 9) {
              const Frame frame = screen(*model, state, {columns, lines});
              ASSERT_EQ(frame.lines.size(), lines);
              for (const StyledLine& line : frame.lines) ASSERT_LE(line_width(line), columns) << plain_text(line);
              ASSERT_LT(frame.cursor_column, static_cast<int>(columns));
            }
          }
        }
      }
    }
  }
}

TEST(Screen, NeverScrollsTheSelectionOutOfSight) {
  const ScreenModel model = crowded_model();
  for (size_t lines = 3; lines < 40; lines += 3) {
    for (const ProcessRow& row : model.rows) {
      ViewState state;
      state.selected_key = row.key;
      const Frame frame = screen(model, state, {80, lines});
      const StyledLine* line = line_with(frame, " " + std::to_string(row.pid) + "  ann");
      ASSERT_NE(line, nullptr) << row.pid << " at " << lines << "\n" << plain_text(frame);
      EXPECT_TRUE(has_style(*line, std::to_string(row.pid), Style::kSelected));
    }
  }
}

TEST(Screen, DimsWhoEndedAndSaysHow) {
  const Frame frame = screen(test_model(), {}, {132, 24});
  const StyledLine* line = line_with(frame, "./render");
  ASSERT_NE(line, nullptr);
  EXPECT_TRUE(has_style(*line, "./render", Style::kDim));
  EXPECT_NE(plain_text(*line).find("[killed 3m04s ago]"), std::string::npos);
}

TEST(Screen, NamesAFileThatCannotBeRead) {
  ScreenModel model = test_model();
  model.unreadable = {"/dev/shm/gpucap-0/x.gpucap: not a gpucap segment"};
  EXPECT_NE(line_with(screen(model, {}, {120, 24}), "1 unreadable: /dev/shm/gpucap-0/x.gpucap: not a gpucap"), nullptr);
}

TEST(Screen, AQuestionIsSeenFromItsBeginningAndInputAtItsEnd) {
  ViewState state;
  state.target_key = test_model().details->key;
  state.prompt = Prompt::kConfirmSignal;
  state.signal = 9;
  EXPECT_EQ(plain_text(screen(test_model(), state, {34, 24}).lines.back()), "[y/n] Send SIGKILL to 4711 (pytho~");
  state.prompt = Prompt::kFilter;
  state.input = "abcdefghijklmnopqrstuvwxyz";
  const Frame frame = screen(test_model(), state, {12, 24});
  EXPECT_EQ(plain_text(frame.lines.back()), ">qrstuvwxyz");
  EXPECT_EQ(frame.cursor_column, 11);
}

TEST(CardLines, WarnWhereTheCapsAreMoreThanTheCard) {
  const std::vector<CardView> cards = test_model().cards;
  const auto lines = card_lines(cards, 100, 4, false);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(has_style(lines[1], "caps 160 GiB = 113%", Style::kWarning));
  EXPECT_FALSE(has_style(lines[0], "caps", Style::kWarning));
}

TEST(CardLines, PartsAreAsLongAsTheyAreLarge) {
  CardView card = test_card(0, 50 * kTestGiB, 25 * kTestGiB);
  card.total_bytes = 100 * kTestGiB;
  card.driver_bytes = 10 * kTestGiB;
  card.used_bytes = 85 * kTestGiB;
  card.name.clear();
  card.capped_processes = 0;
  const std::string line = plain_text(card_lines({card}, 131, 1, true)[0]);
  const auto count = [&](char c) { return std::count(line.begin(), line.end(), c); };
  const double cells = static_cast<double>(line.find(']') - line.find('[') - 1);
  EXPECT_NEAR(static_cast<double>(count('#')), 0.50 * cells, 1);
  EXPECT_NEAR(static_cast<double>(count('d')), 0.10 * cells, 1);
  EXPECT_NEAR(static_cast<double>(count('o')), 0.25 * cells, 1);
}

TEST(CardLines, ManagedMemoryOnTheHostIsNotDrawnOnTheCard) {
  CardView card = test_card(0, 200 * kTestGiB, 0);
  card.managed_bytes = 190 * kTestGiB;
  card.used_bytes = 11 * kTestGiB;
  const std::string line = plain_text(card_lines({card}, 120, 1, true)[0]);
  EXPECT_LT(std::count(line.begin(), line.end(), '#'), 10);
  EXPECT_EQ(line.find('o', line.find('[')), std::string::npos) << line;
}

TEST(CardLines, UseByOthersIsNotMadeUpWithoutNvml) {
  CardView card = test_card(0, 8 * kTestGiB, 0);
  card.used_bytes.reset();
  const std::string line = plain_text(card_lines({card}, 120, 1, true)[0]);
  EXPECT_NE(line.find("9.00 GiB / 141 GiB"), std::string::npos) << line;
}

TEST(History, FillsTheHeightWhereTheCapIsReached) {
  ScreenModel model;
  const ProcessRow row = test_row(1, 0, 100, "x");
  model.history = {0, 50, 100};
  const auto lines = history_lines(model, row, 20, 5, true);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(plain_text(lines[1]).substr(17), "  #");
  EXPECT_EQ(plain_text(lines[2]).substr(17), "  #");
  EXPECT_EQ(plain_text(lines[3]).substr(17), " ##");
  EXPECT_EQ(plain_text(lines[4]).substr(17), " ##");
}

TEST(Cut, MarksWhatIsMissingAndNeverSplitsAWideCharacter) {
  StyledLine line;
  add(&line, "ab", Style::kPlain);
  add(&line, "\xe8\xa8\x93\xe7\xb7\xb4", Style::kDim);
  EXPECT_EQ(plain_text(cut(line, 6)), "ab\xe8\xa8\x93\xe7\xb7\xb4");
  EXPECT_EQ(plain_text(cut(line, 5)), "ab\xe8\xa8\x93~");
  EXPECT_EQ(plain_text(cut(line, 4)), "ab~");
  EXPECT_EQ(plain_text(cut(line, 2)), "a~");
  EXPECT_EQ(plain_text(cut(line, 0)), "");
  EXPECT_EQ(as_ascii("a\xe8\xa8\x93z"), "a??z");
}

}  // namespace
}  // namespace gpucap::tools
