#include "shim/process/config.h"

#include <sys/types.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gpucap {
namespace {

__attribute__((format(printf, 2, 3))) void complain(Config* config, const char* format, ...) {
  if (config->complaint_count == Config::kMaxComplaints) return;
  va_list arguments;
  va_start(arguments, format);
  char* text = config->complaints[config->complaint_count++];
  vsnprintf(text, sizeof(config->complaints[0]), format, arguments);
  va_end(arguments);
}

// For a terminal: no control characters, not endless.
struct Shown {
  explicit Shown(const char* value) {
    size_t n = 0;
    for (; value[n] != '\0' && n < sizeof(text) - 4; ++n) {
      const auto c = static_cast<unsigned char>(value[n]);
      text[n] = c < 0x20 || c == 0x7f ? '?' : value[n];
    }
    text[n] = '\0';
    if (value[n] != '\0') strcat(text, "...");
  }
  char text[80] = {};
};

void read_limits(Config* config) {
  const char* value = getenv("GPUCAP_LIMIT");
  core::LimitError error;
  if (value == nullptr || config->limits.parse(value, &error)) return;
  config->refuse_everything = true;
  const Shown shown(value);
  if (strcmp(shown.text, error.part) == 0) {
    complain(config, "GPUCAP_LIMIT='%s' %s; %s. Until it is set right, no GPU context is given out", shown.text,
             error.reason, core::kLimitHelp);
  } else {
    complain(config, "GPUCAP_LIMIT='%s': '%s' %s; %s. Until it is set right, no GPU context is given out", shown.text,
             error.part, error.reason, core::kLimitHelp);
  }
}

void read_log(Config* config) {
  static constexpr const char* kNames[] = {"off", "error", "warn", "info", "debug"};
  const char* level = getenv("GPUCAP_LOG");
  if (level != nullptr && *level != '\0') {
    bool known = false;
    for (int i = 0; i < 5; ++i) {
      if (strcasecmp(level, kNames[i]) != 0) continue;
      config->log_level = static_cast<LogLevel>(i);
      known = true;
    }
    if (!known)
      complain(config, "GPUCAP_LOG='%s' is not a level (off, error, warn, info, debug); warn is used",
               Shown(level).text);
  }
  const char* file = secure_getenv("GPUCAP_LOG_FILE");
  if (file == nullptr) return;
  size_t n = 0;
  for (const char* c = file; *c != '\0'; ++c) {
    char piece[24] = {*c, '\0'};
    if (c[0] == '%' && c[1] == 'p') {
      snprintf(piece, sizeof(piece), "%ld", static_cast<long>(getpid()));
      ++c;
    }
    const size_t length = strlen(piece);
    if (n + length >= sizeof(config->log_file)) {
      complain(config, "GPUCAP_LOG_FILE is longer than %zu characters; the log goes to stderr",
               sizeof(config->log_file) - 1);
      config->log_file[0] = '\0';
      return;
    }
    memcpy(config->log_file + n, piece, length + 1);
    n += length;
  }
}

void read_directory(Config* config) {
  snprintf(config->directory, sizeof(config->directory), "/dev/shm/gpucap-%ld", static_cast<long>(geteuid()));
  const char* directory = secure_getenv("GPUCAP_DIR");
  if (directory == nullptr || *directory == '\0') return;
  if (directory[0] != '/' || strlen(directory) >= sizeof(config->directory)) {
    complain(config, "GPUCAP_DIR='%s' is not an absolute path of at most %zu characters; %s is used",
             Shown(directory).text, sizeof(config->directory) - 1, config->directory);
    return;
  }
  snprintf(config->directory, sizeof(config->directory), "%s", directory);
  config->directory_is_default = false;
}

}  // namespace

void read_config(Config* config) {
  const char* disable = getenv("GPUCAP_DISABLE");
  config->disabled = disable != nullptr && strcmp(disable, "1") == 0;
  if (config->disabled) return;
  if (disable != nullptr && *disable != '\0' && strcmp(disable, "0") != 0)
    complain(config, "GPUCAP_DISABLE='%s' is neither 0 nor 1; gpucap stays on", Shown(disable).text);
  read_limits(config);
  read_log(config);
  read_directory(config);
  const char* run_id = getenv("GPUCAP_RUN_ID");
  if (run_id != nullptr) snprintf(config->run_id, sizeof(config->run_id), "%s", run_id);
}

}  // namespace gpucap
