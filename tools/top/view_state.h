// What the person at the keys has chosen: changed by keys_handler alone, read by the views. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace gpucap::tools {

enum class SortBy : uint8_t {
  kPid,
  kUser,
  kCard,
  kUsed,
  kLimit,
  kPercent,
  kPeak,
  kDriver,
  kLive,
  kRefused,
  kAge,
  kCommand
};
enum class Tree : uint8_t { kFlat, kParent, kGroup };
enum class EventScope : uint8_t { kAll, kSelected, kTroubles, kHidden };
enum class Page : uint8_t { kTable, kDetails, kHelp };
// What the last line asks for.
enum class Prompt : uint8_t { kNone, kSearch, kFilter, kSignal, kConfirmSignal, kLimit, kConfirmLimit };

struct ViewState {
  Page page = Page::kTable;
  Prompt prompt = Prompt::kNone;
  std::string input;    // what is being typed
  std::string message;  // shown until the next key
  bool message_is_trouble = false;

  std::string selected_key;  // empty: the first row
  size_t first_row = 0;      // that the table shows
  size_t first_line = 0;     // that details or help show

  SortBy sort = SortBy::kUsed;
  bool inverted = false;
  Tree tree = Tree::kFlat;
  std::string filter;
  std::string search;
  bool show_ended = true;
  bool show_history = true;
  EventScope events = EventScope::kAll;

  // Of a question that waits for its answer: about the row that was selected when it was asked.
  std::string target_key;
  int signal = 0;
  uint64_t limit_bytes = 0;  // all ones: none

  bool ascii = false;
};

}  // namespace gpucap::tools
