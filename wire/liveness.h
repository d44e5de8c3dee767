// Tells whether the process behind a segment still lives. Called by the sweep (in the shim, once) and by the tools.
// Reads only: the record lock first, then /proc; never signals anybody.
#pragma once

#include <cstdint>

#include "wire/layout.h"

namespace gpucap::wire {

enum class Liveness {
  kAlive,
  kEnded,   // the writer said so itself
  kKilled,  // gone without a word: killed, crashed, _exit, or replaced by another program through exec
};

struct LivenessAnswer {
  Liveness liveness = Liveness::kKilled;
  int viewer_pid = 0;  // the process as the caller's PID namespace numbers it, 0 if that cannot be known
};

// `fd` is any descriptor of the segment's file. Do not ask about a segment of the calling process itself: closing `fd`
// later would drop its own lock.
LivenessAnswer examine_liveness(int fd, const gpucap_header& header);

// Whether a process has the file mapped.
enum class Mapping {
  kYes,
  kNo,       // it has others, or there is no such process
  kNothing,  // it has no memory at all any more: the kernel is taking it down
  kUnknown,  // not ours to look at
};
Mapping mapping_of(uint32_t pid, uint64_t inode);

// kYes, in short.
bool process_maps_inode(uint32_t pid, uint64_t inode);

const char* to_text(Liveness liveness);

}  // namespace gpucap::wire
