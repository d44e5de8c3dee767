// Puts a file where a descriptor was and gives what was written to it. Test code only.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace gpucap::test {

inline std::string content_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class Capture {
 public:
  explicit Capture(int descriptor) : descriptor_(descriptor) {
    std::fflush(nullptr);
    const int file = mkstemp(path_);
    kept_ = dup(descriptor_);
    dup2(file, descriptor_);
    close(file);
  }
  ~Capture() {
    put_back();
    unlink(path_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  std::string text() {
    put_back();
    return content_of(path_);
  }

 private:
  void put_back() {
    if (kept_ < 0) return;
    std::fflush(nullptr);
    dup2(kept_, descriptor_);
    close(kept_);
    kept_ = -1;
  }
  int descriptor_;
  int kept_ = -1;
  char path_[40] = "/tmp/gpucap-capture-XXXXXX";
};

inline int count_of(const std::string& text, const std::string& what) {
  int count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++count;
  return count;
}

}  // namespace gpucap::test
