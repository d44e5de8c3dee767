#include "shim/process/config.h"

#include <sys/types.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "shim/process/policy_file.h"

namespace gpucap {
void complain(Config* config, const char* format, ...) {
  if (config->complaint_count == Config::kMaxComplaints) return;
  va_list arguments;
  va_start(arguments, format);
  char* text = config->complaints[config->complaint_count++];
  vsnprintf(text, sizeof(config->complaints[0]), format, arguments);
  va_end(arguments);
}

namespace {

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

// A budget that is not understood is not shared, which must not pass for one that is kept.
void read_group(Config* config) {
  const char* group = getenv("GPUCAP_GROUP");
  const char* limit = getenv("GPUCAP_GROUP_LIMIT");
  const bool has_group = group != nullptr && *group != '\0';
  if (has_group && !core::is_group_name(group)) {
    config->refuse_everything = true;
    complain(config, "GPUCAP_GROUP='%s' is not a group's name: %s. Until it is set right, no GPU context is given out",
             Shown(group).text, core::kGroupNameHelp);
  } else if (has_group) {
    snprintf(config->group, sizeof(config->group), "%s", group);
  }
  if (limit == nullptr || *limit == '\0') return;
  core::LimitError error;
  if (!config->group_limits.parse(limit, &error)) {
    config->refuse_everything = true;
    complain(config, "GPUCAP_GROUP_LIMIT='%s': '%s' %s; %s. Until it is set right, no GPU context is given out",
             Shown(limit).text, error.part, error.reason, core::kLimitHelp);
  } else if (!has_group) {
    config->refuse_everything = true;
    complain(config,
             "GPUCAP_GROUP_LIMIT='%s' without GPUCAP_GROUP limits nothing: name the group too. Until it is set right, "
             "no GPU context is given out",
             Shown(limit).text);
  }
}

void read_on_limit(Config* config) {
  const char* value = getenv("GPUCAP_ON_LIMIT");
  core::OnLimitValue asked;
  if (value != nullptr && !core::parse_on_limit(value, &asked))
    complain(config, "GPUCAP_ON_LIMIT='%s' is not understood, so deny is used: %s", Shown(value).text,
             core::kOnLimitHelp);
  using Mode = core::OnLimitValue::Mode;
  const core::Policy& policy = config->policy;
  config->observes_policy = policy.has_on_limit && policy.on_limit.mode == Mode::kObserve;
  // A process may observe limits of its own; those of the policy file hold all the same, see Bounds.
  const bool observes_own = asked.mode == Mode::kObserve && !config->observes_policy;
  config->on_limit = observes_own ? asked : policy.on_limit_with(value == nullptr ? nullptr : &asked);
}

// The policy file may put a user's processes into a group, whatever they ask, at a place that they cannot choose.
void enter_policys_group(Config* config) {
  const char* assigned = config->policy.group;
  if (*assigned == '\0') return;
  if (config->group[0] != '\0' && strcmp(config->group, assigned) != 0)
    complain(config, "GPUCAP_GROUP='%s' is not used: %s puts this user's processes into group '%s'", config->group,
             core::kPolicyPath, assigned);
  snprintf(config->group, sizeof(config->group), "%s", assigned);
  snprintf(config->group_directory, sizeof(config->group_directory), "/dev/shm/gpucap-%ld",
           static_cast<long>(geteuid()));
  config->group_directory_is_default = true;
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
  read_group(config);
  read_policy_file(config);
  const char* disable = getenv("GPUCAP_DISABLE");
  const bool asked_to_disable = disable != nullptr && strcmp(disable, "1") == 0;
  if (asked_to_disable && !config->policy.binds()) {
    new (config) Config;  // in place: it is too large for somebody else's stack
    config->disabled = true;
    return;
  }
  if (asked_to_disable) {
    complain(config, "GPUCAP_DISABLE=1 has no effect: %s sets limits for this user", core::kPolicyPath);
  } else if (disable != nullptr && *disable != '\0' && strcmp(disable, "0") != 0) {
    complain(config, "GPUCAP_DISABLE='%s' is neither 0 nor 1; gpucap stays on", Shown(disable).text);
  }
  if (config->policy.closed) config->refuse_everything = true;
  read_limits(config);
  read_on_limit(config);
  read_log(config);
  read_directory(config);
  memcpy(config->group_directory, config->directory, sizeof(config->group_directory));
  config->group_directory_is_default = config->directory_is_default;
  enter_policys_group(config);
  const char* run_id = getenv("GPUCAP_RUN_ID");
  if (run_id != nullptr) snprintf(config->run_id, sizeof(config->run_id), "%s", run_id);
}

uint64_t Config::limit_of(uint32_t ordinal, std::string_view uuid_text, uint64_t physical_bytes) const {
  if (refuse_everything) return 0;
  const uint64_t own = limits.for_device(ordinal, uuid_text, physical_bytes);
  const uint64_t allowed = policy.for_device(ordinal, uuid_text, physical_bytes);
  return own < allowed ? own : allowed;
}

}  // namespace gpucap
