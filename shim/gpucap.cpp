// The top of the library: puts the parts together at the first need, and closes the segment when the program ends.
// Loading does nothing: no file, no thread, no environment, no driver.
#include "shim/driver/enumerate.h"
#include "shim/driver/look.h"
#include "shim/driver/real_driver.h"
#include "shim/nvml/truth.h"
#include "shim/process/process.h"
#include "shim/runtime/runtime.h"

namespace gpucap {
namespace {

constexpr uint32_t kMostNames = 256;
const char* names[kMostNames];

}  // namespace

// See process.h. Not a constructor: another library's may use CUDA before ours would run.
extern "C" void gpucap_put_together() {
  constexpr auto kDriverNames = static_cast<uint32_t>(driver::Api::kCount);
  uint32_t runtime_count = 0;
  const char* const* runtime_names = runtime::names(&runtime_count);
  uint32_t count = 0;
  for (; count < kDriverNames; ++count) names[count] = driver::all_names()[count];
  runtime::set_first_number(static_cast<uint16_t>(count));
  for (uint32_t i = 0; i < runtime_count && count < kMostNames; ++i) names[count++] = runtime_names[i];
  Parts parts;
  parts.enumerate = driver::enumerate;
  parts.truth = nvml::truth_reader();
  parts.before_look = driver::look::bring_up_to_date;
  parts.api_names = names;
  parts.api_count = count;
  parts.version = GPUCAP_VERSION;
  Process::install(parts);
}

namespace {
__attribute__((destructor)) void close_segment() { Process::at_exit(); }
}  // namespace

}  // namespace gpucap
