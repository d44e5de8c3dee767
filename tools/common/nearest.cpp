// The nearest known name: see nearest.h.
#include "tools/common/nearest.h"

#include <algorithm>

#include "wire/segment_reader.h"

namespace gpucap::tools {
namespace {

// A mistake in every third character is still the same word.
size_t tolerated_slips(std::string_view word) { return std::max<size_t>(1, word.size() / 3); }

std::string_view without_value(std::string_view word) { return word.substr(0, word.find('=')); }

bool is_option(std::string_view word) { return word.size() > 1 && word.front() == '-'; }

void add_names(const CLI::App& app, bool options, std::vector<std::string>* names) {
  if (!options) {
    for (const CLI::App* subcommand : app.get_subcommands({})) names->push_back(subcommand->get_name());
    return;
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names->push_back("--" + name);
  }
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last;
  std::vector<size_t> last(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    std::vector<size_t> row(b.size() + 1);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last = std::move(last);
    last = std::move(row);
  }
  return last[b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string* best = nullptr;
  size_t best_slips = tolerated_slips(word) + 1;
  for (const std::string& candidate : candidates) {
    const size_t slips = edit_distance(word, candidate);
    if (slips >= best_slips) continue;
    best = &candidate;
    best_slips = slips;
  }
  if (best != nullptr) return *best;
  // Nobody mistypes half a word away, but people do stop early: "--refu" for "--refused".
  if (word.size() < 3) return "";
  for (const std::string& candidate : candidates) {
    if (candidate.compare(0, word.size(), word) == 0) return candidate;
  }
  return "";
}

std::string nearest_name(const CLI::App& app, std::string_view word) {
  const std::string_view name = without_value(word);
  std::vector<std::string> names;
  // The chosen subcommand's come first: of two equally near ones it is the likelier.
  for (const CLI::App* chosen : app.get_subcommands()) add_names(*chosen, is_option(name), &names);
  add_names(app, is_option(name), &names);
  return nearest(name, names);
}

std::string with_suggestion(const CLI::App& app, const CLI::ParseError& error) {
  std::string line = wire::clean_text(error.what());
  const std::vector<std::string> unknown = app.remaining(true);
  if (unknown.empty()) return line;
  // Words behind the first unknown one are often its value.
  const auto first_option = std::find_if(unknown.begin(), unknown.end(), is_option);
  const std::string& word = first_option != unknown.end() ? *first_option : unknown.front();
  line = (is_option(word) ? "unknown option " : "unexpected word ") + wire::clean_text(word);
  const std::string meant = nearest_name(app, word);
  if (!meant.empty()) line += "; did you mean " + meant + "?";
  return line;
}

}  // namespace gpucap::tools
