// What a key does: state in, state and at most one command out. Pure: the loop carries commands out and says how it
// went through state.message.
#pragma once

#include <cstdint>
#include <string>

#include "tools/top/view_model.h"
#include "tools/top/view_state.h"

namespace gpucap::tools {

struct Key {
  enum class Code : uint8_t {
    kText,
    kEnter,
    kEscape,
    kBackspace,
    kUp,
    kDown,
    kPageUp,
    kPageDown,
    kHome,
    kEnd,
    kFunction
  };
  Code code = Code::kText;
  std::string text;  // one character as UTF-8, or a byte below 32
  int function = 0;  // of kFunction
};

struct Command {
  enum class Kind : uint8_t { kNone, kQuit, kSendSignal, kSetLimit };
  Kind kind = Kind::kNone;
  std::string key;  // of the row that it is about
  int signal = 0;
  uint64_t limit_bytes = 0;  // all ones: none
};

// `page` is how many rows PgDn goes.
Command handle_key(const Key& key, const ScreenModel& model, size_t page, ViewState* state);

}  // namespace gpucap::tools
