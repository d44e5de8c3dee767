// A process's container and parent: see process_origin.h.
#include "tools/common/process_origin.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "wire/segment_reader.h"

namespace gpucap::tools {
namespace {

constexpr size_t kIdDigits = 64;

std::string_view cut_front(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix ? text.substr(prefix.size()) : std::string_view{};
}

std::string_view without_end(std::string_view text, std::string_view end) {
  const bool ends = text.size() > end.size() && text.substr(text.size() - end.size()) == end;
  return ends ? text.substr(0, text.size() - end.size()) : text;
}

bool is_id(std::string_view text) {
  return text.size() == kIdDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// One part of a control group's path. `before` is the part that it lies in.
std::string_view container_in_part(std::string_view part, std::string_view before) {
  const std::string_view name = without_end(without_end(part, ".scope"), ".service");
  // The monitor beside a container is not in it.
  if (name.find("conmon") != std::string_view::npos) return {};
  // "docker-<id>", "system.slice:docker:<id>", "<id>"
  const size_t last_mark = name.find_last_of("-:");
  const std::string_view tail = last_mark == std::string_view::npos ? name : name.substr(last_mark + 1);
  if (is_id(tail)) return tail;
  if (before == "lxc" || before == "lxc.payload") return part;
  for (const std::string_view prefix : {"lxc.payload.", "systemd-nspawn@"}) {
    if (const std::string_view rest = cut_front(name, prefix); !rest.empty()) return rest;
  }
  // Virtual machines are registered there too.
  const std::string_view machine = cut_front(name, "machine-");
  return before == "machine.slice" && cut_front(machine, "qemu").empty() ? machine : std::string_view{};
}

std::string_view container_in_path(std::string_view path) {
  while (!path.empty()) {
    const size_t slash = path.rfind('/');
    const std::string_view part = path.substr(slash == std::string_view::npos ? 0 : slash + 1);
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
    const size_t slash_before = path.rfind('/');
    const std::string_view before = slash_before == std::string_view::npos ? path : path.substr(slash_before + 1);
    if (const std::string_view found = container_in_part(part, before); !found.empty()) return found;
  }
  return {};
}

template <class Use>
void for_each_line(std::string_view text, const Use& use) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (!use(text.substr(0, end))) return;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::string read_small_file(const std::string& path) {
  std::string text;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  std::array<char, 4096> chunk;
  constexpr size_t kEnough = 64 << 10;
  for (ssize_t got; text.size() < kEnough && (got = read(fd, chunk.data(), chunk.size())) > 0;) {
    text.append(chunk.data(), static_cast<size_t>(got));
  }
  close(fd);
  return text;
}

}  // namespace

std::string container_in_cgroup(std::string_view text) {
  std::string_view found;
  for_each_line(text, [&](std::string_view line) {
    // "hierarchy:controllers:path"; the path may hold colons itself.
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second != std::string_view::npos) found = container_in_path(line.substr(second + 1));
    return found.empty();
  });
  return wire::clean_text(found);
}

int parent_in_status(std::string_view text) {
  int parent = 0;
  for_each_line(text, [&](std::string_view line) {
    const std::string_view value = cut_front(line, "PPid:\t");
    if (value.empty()) return true;
    std::from_chars(value.data(), value.data() + value.size(), parent);
    return false;
  });
  return parent;
}

ProcessOrigin process_origin(int pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  return {container_in_cgroup(read_small_file(folder + "/cgroup")),
          parent_in_status(read_small_file(folder + "/status"))};
}

}  // namespace gpucap::tools
