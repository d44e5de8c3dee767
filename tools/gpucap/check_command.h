// `gpucap check`: says whether gpucap works on this machine, or in one process, a line for each thing that it takes.
#pragma once

#include <string>
#include <vector>

namespace gpucap::tools {

struct CheckOptions {
  int pid = 0;  // 0: the machine and this environment
  std::string directory;
  std::string policy_path;  // empty: the one that is in force
  bool json = false;
};

// The exit status: 0, or 1 if anything failed.
int check_command(const CheckOptions& options);

struct Finding {
  enum class Status { kOk, kWarn, kFail };
  Status status = Status::kOk;
  std::string what;
  std::string why;
};

class Findings {
 public:
  void ok(const std::string& what, const std::string& why) { add(Finding::Status::kOk, what, why); }
  void warn(const std::string& what, const std::string& why) { add(Finding::Status::kWarn, what, why); }
  void fail(const std::string& what, const std::string& why) { add(Finding::Status::kFail, what, why); }
  [[nodiscard]] const std::vector<Finding>& all() const { return list_; }
  [[nodiscard]] bool any_failed() const;
  [[nodiscard]] std::string text() const;  // "ok    library: /usr/lib/libgpucap.so"
  [[nodiscard]] std::string json() const;  // docs/gpucap.md has the schema

 private:
  void add(Finding::Status status, const std::string& what, const std::string& why);
  std::vector<Finding> list_;
};

// The parts, each in its own file.
void check_machine(const CheckOptions& options, Findings* findings);  // library, environment, directory
void check_policy(const CheckOptions& options, Findings* findings);
void check_nvml(Findings* findings);
void check_process(const CheckOptions& options, Findings* findings);

}  // namespace gpucap::tools
