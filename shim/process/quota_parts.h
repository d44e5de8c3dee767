// What the parts of the quota share among themselves (quota.cpp, look.cpp, refusal.cpp, wait.cpp); see quota.h.
#pragma once

#include "shim/process/quota.h"

namespace gpucap {

// What stood in the way when this thread's latest request did not fit.
extern constinit thread_local gpucap_refused_by obstacle __attribute__((tls_model("initial-exec")));

void raise_peak(Device& device);
void publish_group(Device& device);
// What the group leaves to anybody, by the latest words of all members.
[[nodiscard]] uint64_t room_in_group(Device& device);

// The bounds that hold for a request: the limits, or in observe mode only what the policy file allows.
struct Bounds {
  uint64_t own;
  uint64_t group;
};
// One try at both budgets. `ticket`: see wire/group_member.h. `carefully` under device.slow only.
[[nodiscard]] gpucap_refused_by try_both(Device& device, uint64_t bytes, const Bounds& bounds, uint64_t ticket,
                                         bool carefully);

// Waits in the group's line until the request fits; kRefused with `obstacle` set when it is in vain.
[[nodiscard]] Verdict wait_in_line(Process& process, Device& device, const Request& request);

// Notes that a request is let through although it is over the limit.
void observe(Process& process, Device& device, uint16_t api, uint64_t bytes);

// "cudaMalloc (cuMemAlloc_v2)"
struct RequestName {
  RequestName(Process& process, uint16_t api);
  char text[128];
};
// What is in the way, as the end of a line: "the cap of 4 GiB has 3.9 GiB used (...), 100 MiB left".
struct ObstacleText {
  // `enforced`: of an observing process, what the policy file holds it to all the same.
  ObstacleText(Process& process, Device& device, gpucap_refused_by by, bool enforced);
  char text[256];
};

}  // namespace gpucap
