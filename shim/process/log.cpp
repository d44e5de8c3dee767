// The only file that includes spdlog: it formats and filters; the sink below does the writing. spdlog's registry, its
// file sinks and its threads are not used, and the logger is never destroyed, so lines at exit are safe.
#include "shim/process/log.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <new>

#define SPDLOG_NO_EXCEPTIONS
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include "shim/core/spin_lock.h"

namespace gpucap {
namespace {

// A reader that went away must not kill the host program: SIGPIPE is held back for this one write and eaten if it came.
void write_quietly(int descriptor, const char* text, size_t bytes) {
  pollfd ready{descriptor, POLLOUT, 0};
  if (poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) return;
  sigset_t pipe_signal, before, pending;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const ssize_t written = write(descriptor, text, bytes);
  if (written < 0 && errno == EPIPE && sigismember(&pending, SIGPIPE) == 0) {
    const timespec no_wait{0, 0};
    sigtimedwait(&pipe_signal, nullptr, &no_wait);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

class DescriptorSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit DescriptorSink(const char* file) : file_(file) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    {
      const core::SpinGuard guard(formatting_);  // the formatter remembers the calendar of the last second
      formatter_->format(message, line);
    }
    if (file_[0] == '\0') return write_quietly(STDERR_FILENO, line.data(), line.size());
    // Opened for each line: a descriptor that we kept could be closed by the program and its number used for its own
    // data.
    const int descriptor = open(file_, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
    if (descriptor < 0) return write_quietly(STDERR_FILENO, line.data(), line.size());
    write_quietly(descriptor, line.data(), line.size());
    close(descriptor);
  }
  void flush_() override {}

 private:
  core::SpinLock formatting_;
  const char* file_;
};

constexpr spdlog::level::level_enum kSpdlogLevels[] = {spdlog::level::off, spdlog::level::err, spdlog::level::warn,
                                                       spdlog::level::info, spdlog::level::debug};

std::atomic<int> level_now{static_cast<int>(LogLevel::kOff)};
alignas(spdlog::logger) unsigned char logger_memory[sizeof(spdlog::logger)];
std::atomic<spdlog::logger*> logger{nullptr};

void write_line(LogLevel level, const char* text) {
  spdlog::logger* log = logger.load(std::memory_order_acquire);
  if (log != nullptr) log->log(kSpdlogLevels[static_cast<int>(level)], spdlog::string_view_t(text));
}

struct Bucket {
  core::SpinLock lock;
  int64_t tokens = 5;
  int64_t refilled_s = 0;
  uint64_t held_back = 0;
};
Bucket bucket;
constexpr int64_t kBurst = 5;

// Returns false if this line must not be written; otherwise how many before it were not.
bool take_token(uint64_t* held_back) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const core::SpinGuard guard(bucket.lock);
  if (bucket.refilled_s == 0) bucket.refilled_s = now.tv_sec;
  bucket.tokens += now.tv_sec - bucket.refilled_s;
  if (bucket.tokens > kBurst) bucket.tokens = kBurst;
  bucket.refilled_s = now.tv_sec;
  if (bucket.tokens <= 0) {
    ++bucket.held_back;
    return false;
  }
  --bucket.tokens;
  *held_back = bucket.held_back;
  bucket.held_back = 0;
  return true;
}

}  // namespace

void set_up_log(LogLevel level, const char* file) {
  if (logger.load(std::memory_order_relaxed) != nullptr) return;
  auto sink = std::make_shared<DescriptorSink>(file);
  const char* pattern = file[0] == '\0' ? "gpucap: %v" : "%Y-%m-%dT%H:%M:%S.%eZ %P %l: %v";
  sink->set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern, spdlog::pattern_time_type::utc));
  auto* log = new (logger_memory) spdlog::logger("gpucap", std::move(sink));
  log->set_level(kSpdlogLevels[static_cast<int>(level)]);
  log->set_error_handler([](const std::string&) {});  // the default one prints
  logger.store(log, std::memory_order_release);
  level_now.store(static_cast<int>(level), std::memory_order_relaxed);
}

bool log_enabled(LogLevel level) { return static_cast<int>(level) <= level_now.load(std::memory_order_relaxed); }

void log_line(LogLevel level, const char* format, ...) {
  if (!log_enabled(level)) return;
  const int saved = errno;
  char text[768];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  write_line(level, text);
  errno = saved;
}

void log_line_rarely(LogLevel level, const char* format, ...) {
  if (!log_enabled(level)) return;
  uint64_t held_back = 0;
  if (!take_token(&held_back)) return;
  const int saved = errno;
  char text[768];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  if (length < 0) length = 0;
  if (static_cast<size_t>(length) >= sizeof(text)) length = sizeof(text) - 1;
  if (held_back != 0) {
    snprintf(text + length, sizeof(text) - static_cast<size_t>(length), " (%llu lines like it were not shown)",
             static_cast<unsigned long long>(held_back));
  }
  write_line(level, text);
  errno = saved;
}

}  // namespace gpucap
