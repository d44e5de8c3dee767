// A program that does what a test tells it, step by step (told_client.cpp), in the world of world.h.
#pragma once

#include <chrono>
#include <sstream>
#include <string>

#include "tests/e2e/world.h"

namespace gpucap::e2e {

class Told : public Child {
 public:
  explicit Told(const Environment& environment) : Child({TOLD_PROGRAM, "linked"}, environment) {}

  // Gives a command without waiting for the answer.
  void say(const std::string& command) {
    out.clear();
    word_ = command.substr(0, command.find(' '));
    tell(command + "\n");
  }
  // The answer to the latest command; -99 if none comes.
  int answer() {
    if (!wait_for(word_ + " ")) return -99;
    size_t at = out.rfind(word_ + " ", 0) == 0 ? 0 : out.find("\n" + word_ + " ") + 1;
    int result = -99;
    std::istringstream(out.substr(at + word_.size())) >> result >> milliseconds;
    return result;
  }
  int does(const std::string& command) {
    say(command);
    return answer();
  }
  // Whether the answer comes within the time.
  bool answers_within(int ms) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
    while (std::chrono::steady_clock::now() < until) {
      poll_once(5);
      if (out.rfind(word_ + " ", 0) == 0 || out.find("\n" + word_ + " ") != std::string::npos) return true;
    }
    return false;
  }
  int take(const std::string& way, uint64_t bytes) { return does("take " + way + " " + std::to_string(bytes)); }

  long milliseconds = 0;  // that the latest answered command took

 private:
  std::string word_;
};

}  // namespace gpucap::e2e
