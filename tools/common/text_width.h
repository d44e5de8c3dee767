// How many columns of a terminal a text takes, and cutting it to fit. Pure; takes valid UTF-8 without control
// characters, which is what the segment reader hands out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gpucap::tools {

size_t display_width(std::string_view text);

// At most `columns` wide; what was cut ends in "~".
std::string fit(std::string_view text, size_t columns);

std::string padded_left(std::string_view text, size_t columns);   // spaces before it
std::string padded_right(std::string_view text, size_t columns);  // spaces after it

// Rows of cells under each other, two blanks between: the first column to the left, figures to the right.
std::vector<std::string> aligned_table(const std::vector<std::vector<std::string>>& cells);

}  // namespace gpucap::tools
