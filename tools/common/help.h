// --help that fits a terminal of 80 columns and 24 lines: one line an option, nothing between the parts. Given to CLI11
// as its formatter by both programs.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace gpucap::tools {

class CompactHelp : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

}  // namespace gpucap::tools
