// The rows of proc_table.txt, as the build generates them (see generate.cmake), and the answer of every exported
// function that this fake does not imitate.
#pragma once

namespace fake {

struct ProcRow {
  const char* name;  // nullptr ends the list
  int since;
  bool per_thread;
  const char* spelling;
  void* function;
};
extern const ProcRow kProcRows[];
// What cuDriverGetVersion says.
extern const int kReportedVersion;

// Logs the call and returns CUDA_ERROR_NOT_SUPPORTED, or what FAKE_CUDA_FAIL says.
int not_imitated(const char* name);

}  // namespace fake
