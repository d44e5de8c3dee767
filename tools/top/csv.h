// Rows of separated values for scripts: nvidia-smi's idiom (a blank after each comma, units where wanted), or plain
// CSV. Pure: rows in, text out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/top/query.h"

namespace gpucap::tools {

struct CsvStyle {
  bool spaced = false;  // ", " and "[N/A]", as nvidia-smi writes; else "," and nothing
  bool units = false;   // "3292 MiB", "85 %"; else exact figures: bytes
};

// Both end in a line feed.
std::string csv_header(const std::vector<const QueryField*>& fields, const CsvStyle& style);
std::string csv_row(const QueryRow& row, const std::vector<const QueryField*>& fields, const CsvStyle& style);

std::string csv_line(const std::vector<std::string>& cells, bool spaced);  // quotes what must be

}  // namespace gpucap::tools
