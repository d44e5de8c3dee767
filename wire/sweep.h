// Removes the segments that dead processes left behind. Called by the shim once, before it makes its own segment, and
// by the tools; and the files of groups that nobody lives in. Bounded work, no malloc. Never removes a live one, never
// a file that is not a segment by name and content, never follows a link. Any number of sweepers may run at once.
//
// Nobody knows when a killed process died, so the first sweep that finds it dead stamps the file: sticky bit and time
// of change. Its keep time runs from there, and the log of what was killed after a day of quiet can still be read.
#pragma once

#include <cstdint>

namespace gpucap::wire {

struct SweepRules {
  uint64_t keep_ns = uint64_t{10} * 60 * 1000000000;       // since the end, or since first found dead
  uint64_t keep_temporary_ns = uint64_t{60} * 1000000000;  // since last written
  uint32_t keep_dead = 200;                                // in the directory; the newest of those examined stay
  uint32_t examine_at_most = 256;  // files a call, no more than that; a random stretch where there are more
};

struct SweepResult {
  uint32_t examined = 0;
  uint32_t removed = 0;
};

// The descriptor must be open for reading; its position is used.
SweepResult sweep(int directory_fd, const SweepRules& rules = {});

}  // namespace gpucap::wire
