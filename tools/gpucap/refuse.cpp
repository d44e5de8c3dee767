// Saying no: see refuse.h.
#include "tools/gpucap/refuse.h"

#include <iostream>

#include "wire/segment_reader.h"

namespace gpucap::tools {

int refuse(const Refusal& refusal) {
  std::cerr << "gpucap: " << wire::clean_text(refusal.reason) << '\n';
  return refusal.exit_code;
}

}  // namespace gpucap::tools
