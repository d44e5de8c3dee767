// `gpucap check`: see check_command.h.
#include "tools/gpucap/check_command.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "wire/segment_reader.h"

namespace gpucap::tools {
namespace {

constexpr int kSchema = 1;

const char* word(Finding::Status status) {
  switch (status) {
    case Finding::Status::kOk:
      return "ok";
    case Finding::Status::kWarn:
      return "warn";
    case Finding::Status::kFail:
      return "FAIL";
  }
  return "FAIL";
}

}  // namespace

void Findings::add(Finding::Status status, const std::string& what, const std::string& why) {
  list_.push_back({status, wire::clean_text(what), wire::clean_text(why)});
}

bool Findings::any_failed() const {
  return std::any_of(list_.begin(), list_.end(),
                     [](const Finding& finding) { return finding.status == Finding::Status::kFail; });
}

std::string Findings::text() const {
  std::string text;
  for (const Finding& finding : list_) {
    std::string status = word(finding.status);
    status.resize(6, ' ');
    text += status + finding.what + ": " + finding.why + "\n";
  }
  return text;
}

std::string Findings::json() const {
  using Json = nlohmann::ordered_json;
  Json checks = Json::array();
  for (const Finding& finding : list_) {
    const bool failed = finding.status == Finding::Status::kFail;
    checks.push_back(
        {{"status", failed ? "fail" : word(finding.status)}, {"what", finding.what}, {"why", finding.why}});
  }
  const Json object = {{"schema", kSchema}, {"gpucap", GPUCAP_VERSION}, {"ok", !any_failed()}, {"checks", checks}};
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

int check_command(const CheckOptions& options) {
  Findings findings;
  if (options.pid != 0) {
    check_process(options, &findings);
  } else {
    check_machine(options, &findings);
    check_policy(options, &findings);
    check_nvml(&findings);
  }
  std::cout << (options.json ? findings.json() : findings.text()) << std::flush;
  return findings.any_failed() ? 1 : 0;
}

}  // namespace gpucap::tools
