// `gpucap set --group`: see set_group.h. The group's file knows its cards by UUID alone: their numbers and sizes come
// from the living members.
#include "tools/gpucap/set_group.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <set>
#include <vector>

#include "tools/common/format.h"
#include "tools/common/scan.h"
#include "tools/gpucap/policy_file.h"
#include "tools/gpucap/refuse.h"
#include "tools/gpucap/settings.h"
#include "wire/control.h"

namespace gpucap::tools {
namespace {

Refusal failed(const std::string& reason) { return {kExitFailed, reason}; }

struct GroupCard {
  int number = 0;  // the group's own
  std::string uuid;
  std::set<uint32_t> ordinals;  // as the members number it
  uint64_t physical_bytes = 0;
  uint64_t before_bytes = 0;
  uint64_t used_bytes = 0;
  uint64_t after_bytes = 0;
};

// A group that the policy file puts people into lies in their default directory, whatever GPUCAP_DIR says.
void add_default(const SetOptions& options, Directories* directories) {
  if (!options.directory.empty() || environment("GPUCAP_DIR").empty()) return;
  const std::string path = "/dev/shm/gpucap-" + std::to_string(geteuid());
  for (const SegmentDirectory& directory : directories->open) {
    if (directory.path() == path) return;
  }
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (fd >= 0) directories->open.emplace_back(path, fd);
}

std::optional<Refusal> find_directory(const Directories& directories, const std::string& group,
                                      const SegmentDirectory** found) {
  std::string places;
  std::set<std::string> others;
  for (const SegmentDirectory& directory : directories.open) {
    places += (places.empty() ? "" : ", ") + directory.path();
    for (const std::string& name : wire::group_names(directory.fd())) {
      others.insert(name);
      if (name != group) continue;
      if (*found != nullptr) {
        return failed("there are several groups '" + group + "': choose with --dir " + (*found)->path() + " or --dir " +
                      directory.path());
      }
      *found = &directory;
    }
  }
  if (*found != nullptr) return std::nullopt;
  if (directories.open.empty() && !directories.errors.empty()) return failed(directories.errors.front());
  std::string text = "there is no group '" + group + "'" + (places.empty() ? "" : " in " + places);
  if (!others.empty()) text += "; there are:";
  for (const std::string& other : others) text += " " + other;
  return failed(text);
}

std::vector<GroupCard> cards_of(const wire::GroupSnapshot& group, const Scan& members) {
  std::vector<GroupCard> cards;
  for (size_t i = 0; i < group.devices.size(); ++i) {
    GroupCard card;
    card.number = static_cast<int>(i);
    card.uuid = uuid_as_text(group.devices[i].uuid);
    card.before_bytes = group.devices[i].limit_bytes;
    card.used_bytes = static_cast<uint64_t>(group.devices[i].used_bytes);
    for (const Segment& member : members.segments) {
      if (!member.alive() || member.snapshot.group != group.name) continue;
      for (const wire::DeviceSnapshot& device : member.snapshot.devices) {
        if (!same_card(uuid_as_text(device.gauges.uuid), card.uuid)) continue;
        card.ordinals.insert(device.gauges.ordinal);
        card.physical_bytes = device.gauges.physical_bytes;
      }
    }
    cards.push_back(std::move(card));
  }
  return cards;
}

// Leaves the cards that are to change, with what they are to have.
std::optional<Refusal> plan(const NewLimit& limit, const std::string& group, std::vector<GroupCard>* cards) {
  const PolicyFile policy_file = read_policy_file(core::kPolicyPath);
  const auto policy = policy_of_group(policy_file, group);
  std::vector<GroupCard> changes;
  for (GroupCard& card : *cards) {
    if (limit.needs_ordinals() && card.ordinals.size() != 1) {
      return failed("the members of '" + group + "' do not agree on the number of " + card.uuid +
                    ": name the GPU by its UUID");
    }
    if (limit.needs_physical() && card.physical_bytes == 0) {
      return failed("how large " + card.uuid + " is cannot be known, since no member of '" + group +
                    "' runs: give the limit in bytes");
    }
    const uint32_t ordinal = card.ordinals.empty() ? 0 : *card.ordinals.begin();
    const auto bytes = limit.for_device(ordinal, card.uuid, card.physical_bytes);
    if (!bytes) continue;
    const uint64_t most_bytes = policy_file.there ? policy->for_device(ordinal, card.uuid, card.physical_bytes)
                                                  : uint64_t{GPUCAP_WIRE_NO_LIMIT};
    if (*bytes > most_bytes) {
      return failed(std::string("the policy file ") + core::kPolicyPath + " allows the group '" + group + "' at most " +
                    human_bytes(most_bytes) + " on " + card.uuid);
    }
    card.after_bytes = *bytes;
    changes.push_back(std::move(card));
  }
  if (changes.empty()) {
    return failed(cards->empty() ? "nobody in the group '" + group + "' has used a GPU yet"
                                 : "the group '" + group + "' uses no such GPU");
  }
  *cards = std::move(changes);
  return std::nullopt;
}

std::string limit_text(uint64_t bytes) { return bytes == GPUCAP_WIRE_NO_LIMIT ? "no limit" : human_bytes(bytes); }

}  // namespace

std::optional<Refusal> set_group(const SetOptions& options, const NewLimit& limit) {
  if (auto problem = problem_of_group(options.group)) return Refusal{kExitRefused, "set: " + *problem};
  Directories directories = open_directories(places_to_look(options.directory));
  add_default(options, &directories);
  const SegmentDirectory* directory = nullptr;
  if (auto refusal = find_directory(directories, options.group, &directory)) return refusal;
  wire::GroupFile file;
  wire::GroupSnapshot group;
  int error_number = 0;
  wire::ControlError error = file.open(directory->fd(), options.group, true, &error_number);
  if (error == wire::ControlError::kNone) error = file.snapshot(&group, &error_number);
  const auto trouble = [&] {
    if (error == wire::ControlError::kNotOwner) {
      return failed("the group '" + options.group +
                    "' is not yours: only the owner of its file and root can change it");
    }
    return failed("the file of the group '" + options.group + "' in " + directory->path() + " " + wire::to_text(error) +
                  (error_number != 0 ? std::string(" (") + std::strerror(error_number) + ")" : ""));
  };
  if (error != wire::ControlError::kNone) return trouble();
  std::vector<GroupCard> cards = cards_of(group, scan(directories));
  if (auto refusal = plan(limit, options.group, &cards)) return refusal;
  for (const GroupCard& card : cards) {
    error = file.set_limit(card.number, card.after_bytes, &error_number);
    if (error != wire::ControlError::kNone) return trouble();
    std::cout << "group " << options.group << ", " << card.uuid << ": " << limit_text(card.before_bytes) << " -> "
              << limit_text(card.after_bytes) << " (" << group.members.size()
              << (group.members.size() == 1 ? " process uses " : " processes use ") << human_bytes(card.used_bytes)
              << ")\n";
    if (card.used_bytes > card.after_bytes) {
      std::cout << "  they use more than that: nothing is taken away, but new requests are refused\n";
    }
  }
  return std::nullopt;
}

}  // namespace gpucap::tools
