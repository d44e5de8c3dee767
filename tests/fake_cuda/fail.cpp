// See fail.h. The variables are read once, at the first call.
#include "tests/fake_cuda/fail.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

namespace fake {
namespace {

struct Rule {
  std::string name;
  unsigned long nth = 0;  // 0: always
  int code = 0;
  std::atomic<unsigned long> calls{0};
};

// Never destroyed: calls may come from exit handlers.
std::deque<Rule>& rules() {
  static std::deque<Rule>& list = *[] {
    auto* const parsed = new std::deque<Rule>;
    const char* const text = std::getenv("FAKE_CUDA_FAIL");
    std::string rest = text == nullptr ? "" : text;
    while (!rest.empty()) {
      const size_t comma = rest.find(',');
      const std::string item = rest.substr(0, comma);
      rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
      const size_t colon = item.find(':');
      const size_t equals = item.find('=');
      if (colon == std::string::npos || equals == std::string::npos || equals < colon) {
        std::fprintf(stderr, "fake cuda: FAKE_CUDA_FAIL: \"%s\" is not name:n=code\n", item.c_str());
        std::abort();  // a test with a typing error must not pass
      }
      Rule& rule = parsed->emplace_back();
      rule.name = item.substr(0, colon);
      rule.nth = item[colon + 1] == '*' ? 0 : std::strtoul(item.c_str() + colon + 1, nullptr, 10);
      rule.code = std::atoi(item.c_str() + equals + 1);
    }
    return parsed;
  }();
  return list;
}

}  // namespace

bool fails_on_demand(const char* name, int* code) {
  for (Rule& rule : rules()) {
    if (rule.name != name) continue;
    const unsigned long call = ++rule.calls;
    if (rule.nth != 0 && rule.nth != call) continue;
    *code = rule.code;
    return true;
  }
  return false;
}

void wait_on_demand(const char* name) {
  static const char* const text = std::getenv("FAKE_CUDA_SLOW");
  if (text == nullptr) return;
  const std::string rule = text;
  const size_t equals = rule.find('=');
  const long ms = equals == std::string::npos ? 0 : std::atol(rule.c_str() + equals + 1);
  if (ms <= 0) {
    std::fprintf(stderr, "fake cuda: FAKE_CUDA_SLOW: \"%s\" is not name=milliseconds\n", text);
    std::abort();
  }
  if (rule.compare(0, equals, name) == 0) ::usleep(static_cast<useconds_t>(ms) * 1000);
}

void log_call(const char* name, int result) {
  static const char* const path = std::getenv("FAKE_CUDA_LOG");
  if (path == nullptr || *path == '\0') return;
  char line[160];
  const int length = std::snprintf(line, sizeof(line), "%s %d\n", name, result);
  // Opened each time: the host program may close every descriptor that it does not know.
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return;
  if (::write(fd, line, static_cast<size_t>(length)) != length) std::perror("fake cuda: FAKE_CUDA_LOG");
  ::close(fd);
}

}  // namespace fake
