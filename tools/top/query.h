// The fields that scripts can ask for: one table of name, unit, meaning and where the figure is. Used by --query, --csv
// and --query-fields. Pure: what was read in, values out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tools/common/scan.h"

namespace gpucap::tools {

// One process on one device that it uses.
struct QueryRow {
  const Scan* scan;
  const Segment* segment;
  const wire::DeviceSnapshot* device;
};
// By pid, start and device, whatever order the files lie in.
std::vector<QueryRow> query_rows(const Scan& scan);

enum class FieldUnit : uint8_t { kNone, kBytes, kPercent, kSeconds };

// Nothing where a process has no such thing: no limit, no group, no refusal yet.
using FieldValue = std::variant<std::monostate, uint64_t, int64_t, std::string>;

struct QueryField {
  const char* name;
  FieldUnit unit;
  const char* meaning;
  FieldValue (*value)(const QueryRow& row);
};
const std::vector<QueryField>& query_fields();

// "pid,used" or "pid, used"; on a name that is no field, false and one line with the nearest.
bool find_fields(std::string_view names, std::vector<const QueryField*>* fields, std::string* error);

// The list that --query-fields prints.
std::string query_fields_help();

}  // namespace gpucap::tools
