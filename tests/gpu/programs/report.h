// How a native program under test speaks to the harness: the same lines as report.py. Plain C++11 and stdio, so that
// nvcc and any host compiler take it; knows nothing of gpucap.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace report {

inline void say(const std::string& body) {
  std::printf("@{%s}\n", body.c_str());
  std::fflush(stdout);
}

inline void fact(const std::string& name, unsigned long long value) {
  say("\"fact\": \"" + name + "\", \"value\": " + std::to_string(value));
}

inline void check(const std::string& what, bool ok, const std::string& detail = "") {
  say("\"check\": \"" + what + "\", \"ok\": " + (ok ? "true" : "false") + ", \"detail\": \"" + detail + "\"");
}

// Rest here, with nothing in flight, until the harness has looked.
inline void ready(const std::string& label) {
  say("\"ready\": \"" + label + "\"");
  for (int c = std::getchar(); c != '\n'; c = std::getchar()) {
    if (c == EOF) std::exit(3);
  }
}

}  // namespace report
