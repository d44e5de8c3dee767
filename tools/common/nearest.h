// "Did you mean": finds the known name that is nearest to a mistyped one, and puts it into the line that a person reads
// when the arguments are wrong. Used by both programs' argument parsing. Pure, apart from asking CLI11 for its names.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gpucap::tools {

// Single-character slips between two words: one left out, put in, changed, or swapped with its neighbour.
size_t edit_distance(std::string_view a, std::string_view b);

// The candidate that was probably meant; empty if none is near. Of equally near ones, the first.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// Among the options ("--limit") or subcommands of the app and of the subcommand that was chosen; a word that begins
// with a dash is compared with options, any other with subcommands. What stands behind '=' is left out. Empty if none
// is near.
std::string nearest_name(const CLI::App& app, std::string_view word);

// One line without its end: what CLI11 found wrong, and for a name that it does not know the nearest one that it knows.
// `app` is the one whose parse() failed; not for the errors that are none (--help, --version).
std::string with_suggestion(const CLI::App& app, const CLI::ParseError& error);

}  // namespace gpucap::tools
