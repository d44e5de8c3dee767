// Separated values: see csv.h.
#include "tools/top/csv.h"

namespace gpucap::tools {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::string quoted_if_needed(const std::string& cell) {
  const bool edge_blank = !cell.empty() && (cell.front() == ' ' || cell.back() == ' ');
  if (!edge_blank && cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string text = "\"";
  for (const char c : cell) {
    if (c == '"') text += '"';
    text += c;
  }
  return text + '"';
}

const char* unit_text(FieldUnit unit) {
  switch (unit) {
    case FieldUnit::kBytes:
      return "MiB";
    case FieldUnit::kPercent:
      return "%";
    case FieldUnit::kSeconds:
      return "s";
    case FieldUnit::kNone:
      break;
  }
  return nullptr;
}

template <class Number>
std::string number_text(Number value, FieldUnit unit, bool units) {
  if (!units || unit == FieldUnit::kNone) return std::to_string(value);
  if (unit == FieldUnit::kBytes) value /= static_cast<Number>(kMiB);
  return std::to_string(value) + " " + unit_text(unit);
}

std::string cell_text(const FieldValue& value, FieldUnit unit, const CsvStyle& style) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* number = std::get_if<uint64_t>(&value)) return number_text(*number, unit, style.units);
  if (const auto* number = std::get_if<int64_t>(&value)) return number_text(*number, unit, style.units);
  return style.spaced ? "[N/A]" : "";
}

}  // namespace

std::string csv_line(const std::vector<std::string>& cells, bool spaced) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i != 0) line += spaced ? ", " : ",";
    line += quoted_if_needed(cells[i]);
  }
  return line + '\n';
}

std::string csv_header(const std::vector<const QueryField*>& fields, const CsvStyle& style) {
  std::vector<std::string> cells;
  for (const QueryField* field : fields) {
    std::string cell = field->name;
    if (style.spaced && field->unit != FieldUnit::kNone) {
      const bool exact_bytes = !style.units && field->unit == FieldUnit::kBytes;
      cell += std::string(" [") + (exact_bytes ? "bytes" : unit_text(field->unit)) + "]";
    }
    cells.push_back(std::move(cell));
  }
  return csv_line(cells, style.spaced);
}

std::string csv_row(const QueryRow& row, const std::vector<const QueryField*>& fields, const CsvStyle& style) {
  std::vector<std::string> cells;
  for (const QueryField* field : fields) cells.push_back(cell_text(field->value(row), field->unit, style));
  return csv_line(cells, style.spaced);
}

}  // namespace gpucap::tools
