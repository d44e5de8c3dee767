// From the words of a command to the files that the kernel will really execute. Used before a program is started.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gpucap::tools {

// Why a program is not started, and what gpucap exits with.
struct Refusal {
  int exit_code;
  std::string reason;
};
inline constexpr int kExitRefused = 125;        // ours: the cap could not be put on
inline constexpr int kExitNotExecutable = 126;  // as shells do
inline constexpr int kExitNotFound = 127;

// Finds a command as execvp would: with a slash as it stands, else along PATH.
std::optional<Refusal> find_command(const std::string& name, std::string* path);

// The ELF programs that run one after the other in the same process until the command itself does: its script's
// interpreter (and that one's), and what `env` finds. The last is the one whose memory is to be capped.
std::optional<Refusal> programs_behind(const std::string& path, std::vector<std::string>* programs);

}  // namespace gpucap::tools
