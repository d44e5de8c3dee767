// Where a process belongs, from /proc: its container and its parent, as the viewer's namespaces show them. Used by what
// prints for scripts. Reads only; what cannot be read is simply not known.
#pragma once

#include <string>
#include <string_view>

namespace gpucap::tools {

struct ProcessOrigin {
  std::string container;  // the runtime's id, or the name where the runtime goes by names; empty: none
  int parent_pid = 0;     // in the viewer's PID namespace; 0: not known, or outside of it
};
ProcessOrigin process_origin(int pid);

// The container in the text of /proc/<pid>/cgroup, of version 1 or 2, as Docker, containerd, CRI-O, Podman, Kubernetes,
// LXC and systemd-nspawn write it; the innermost of nested ones. Empty if there is none: sessions, services and scopes
// of systemd are not containers. Pure; the answer is clean.
std::string container_in_cgroup(std::string_view text);

// "PPid:" of the text of /proc/<pid>/status. Pure.
int parent_in_status(std::string_view text);

}  // namespace gpucap::tools
