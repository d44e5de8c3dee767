// The compact help: see help.h.
#include "tools/common/help.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tools/common/text_width.h"

namespace gpucap::tools {
namespace {

using Line = std::pair<std::string, std::string>;  // what is typed, what it does

std::string spelling(const CLI::Option& option) {
  std::string text;
  for (const std::string& name : option.get_snames()) text += (text.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) text += (text.empty() ? "--" : ", --") + name;
  // CLI11 puts what a value is checked for behind a colon; the description says it better.
  const std::string type = option.get_type_name();
  if (option.get_items_expected_max() > 0 && !type.empty()) text += " " + type.substr(0, type.find(':'));
  return text;
}

std::string lines_text(const std::vector<Line>& lines) {
  size_t width = 0;
  for (const Line& line : lines) width = std::max(width, display_width(line.first));
  std::string text;
  for (const Line& line : lines) text += "  " + padded_right(line.first, width) + "  " + line.second + "\n";
  return text;
}

}  // namespace

std::string CompactHelp::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode /*mode*/) const {
  std::vector<Line> lines;
  for (const CLI::Option* option : app->get_options()) {
    // Those without a group are spellings that are only kept.
    if (!option->get_group().empty()) lines.emplace_back(spelling(*option), option->get_description());
  }
  for (const CLI::App* subcommand : app->get_subcommands({})) {
    if (!subcommand->get_group().empty()) lines.emplace_back(subcommand->get_name(), subcommand->get_description());
  }
  const bool has_subcommands = !app->get_subcommands({}).empty();
  return "Usage: " + name + " [OPTIONS]" + (has_subcommands ? " [SUBCOMMAND]" : "") + "\n" + app->get_description() +
         "\n" + lines_text(lines) + app->get_footer() + "\n";
}

}  // namespace gpucap::tools
