// Waiting for room: see room.h.
#include "tools/gpucap/room.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tools/common/format.h"
#include "wire/control.h"
#include "wire/files.h"

namespace gpucap::tools {
namespace {

constexpr uint64_t kFirstPauseNs = UINT64_C(100000000);
constexpr uint64_t kLongestPauseNs = UINT64_C(2000000000);

Refusal refused(const std::string& why) { return {kExitRefused, why}; }

void pause_for(uint64_t ns) {
  const timespec time = {static_cast<time_t>(ns / 1000000000), static_cast<long>(ns % 1000000000)};
  nanosleep(&time, nullptr);  // a signal that is handled only makes the next look come sooner
}

// What the group has and holds on the card; none of both if it has no file yet, for then nobody is in it.
std::optional<Refusal> ask_group(const std::string& directory, const std::string& group, RoomOffer* offer) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;  // the first process makes it
  wire::GroupFile file;
  wire::GroupSnapshot snapshot;
  int error_number = 0;
  wire::ControlError error = file.open(fd, group, false, &error_number);
  if (error == wire::ControlError::kNone) error = file.snapshot(&snapshot, &error_number);
  close(fd);
  if (error == wire::ControlError::kCannotOpen && error_number == ENOENT) return std::nullopt;
  if (error != wire::ControlError::kNone) {
    return refused("the file of the group '" + group + "' in " + directory + " " + wire::to_text(error) +
                   (error_number != 0 ? std::string(" (") + std::strerror(error_number) + ")" : ""));
  }
  for (const auto& device : snapshot.devices) {
    if (!same_card(uuid_as_text(device.uuid), offer->card.uuid)) continue;
    // The standing limit counts while the group has members; without any, the next one brings its own.
    if (!snapshot.members.empty() && device.limit_bytes != GPUCAP_WIRE_NO_LIMIT) {
      offer->group_limit_bytes = device.limit_bytes;
    }
    offer->group_used_bytes = static_cast<uint64_t>(device.used_bytes);
  }
  return std::nullopt;
}

std::string gpu_text(const Card& card) { return "GPU " + std::to_string(card.ordinal); }

}  // namespace

uint64_t RoomOffer::free_bytes() const {
  if (!group_limit_bytes) return card.free_bytes;
  const uint64_t in_group = *group_limit_bytes > group_used_bytes ? *group_limit_bytes - group_used_bytes : 0;
  return std::min(card.free_bytes, in_group);
}

bool RoomOffer::never_fits() const {
  return needed_bytes > card.total_bytes || (group_limit_bytes && needed_bytes > *group_limit_bytes);
}

const RoomOffer* best_offer(const std::vector<RoomOffer>& offers) {
  const RoomOffer* best = nullptr;
  for (const RoomOffer& offer : offers) {
    if (offer.fits() && (best == nullptr || offer.free_bytes() > best->free_bytes())) best = &offer;
  }
  return best;
}

std::string waiting_text(const std::vector<RoomOffer>& offers, const RoomWish& wish) {
  std::string text = human_bytes(offers.front().needed_bytes) + " free on ";
  text += offers.size() == 1 ? gpu_text(offers.front().card) : "one of " + std::to_string(offers.size()) + " GPUs";
  const auto most = std::max_element(offers.begin(), offers.end(), [](const RoomOffer& a, const RoomOffer& b) {
    return a.free_bytes() < b.free_bytes();
  });
  text += " (now " + human_bytes(most->free_bytes());
  if (offers.size() > 1) text += " on " + gpu_text(most->card);
  if (most->free_bytes() < most->card.free_bytes) text += ", in the budget of group " + wish.group;
  return text + ")";
}

std::optional<Refusal> Room::prepare(const char* visible_devices) {
  std::string reason;
  if (!nvml_.open(&reason)) return refused("what is free on the GPUs cannot be known: " + reason);
  std::vector<Card> cards = nvml_.visible_cards(visible_devices);
  if (cards.empty()) return refused("no GPU is visible here (CUDA_VISIBLE_DEVICES)");
  // A program that is not told otherwise uses its first one.
  if (wish_.gpu.kind == GpuName::Kind::kUnnamed) cards.resize(1);
  const size_t visible = cards.size();
  std::erase_if(cards, [&](const Card& card) { return !wish_.gpu.matches(card.ordinal, card.uuid); });
  if (cards.empty()) {
    return refused("--gpu names none of the " + std::to_string(visible) +
                   " visible GPUs: give any, a number or a UUID");
  }
  if (cards.size() > 1 && wish_.gpu.kind == GpuName::Kind::kUuid) return refused("--gpu names more than one GPU");
  cards_ = std::move(cards);
  return std::nullopt;
}

std::optional<Refusal> Room::look(const std::string& directory, std::vector<RoomOffer>* offers) {
  offers->clear();
  for (Card& card : cards_) {
    if (!nvml_.read_memory(&card)) return refused("NVML no longer tells what is free on " + gpu_text(card));
    RoomOffer offer;
    offer.card = card;
    if (wish_.size) offer.needed_bytes = wish_.size->resolve(card.total_bytes);
    if (!wish_.group.empty()) {
      // A program that is shown this card alone numbers it 0.
      const uint32_t ordinal = wish_.gpu.kind == GpuName::Kind::kUnnamed ? card.ordinal : 0;
      const uint64_t limit_bytes = wish_.group_limits.for_device(ordinal, card.uuid, card.total_bytes);
      if (limit_bytes != core::kNoLimit) offer.group_limit_bytes = limit_bytes;
      if (auto refusal = ask_group(directory, wish_.group, &offer)) return refusal;
    }
    offers->push_back(std::move(offer));
  }
  if (std::all_of(offers->begin(), offers->end(), [](const RoomOffer& offer) { return offer.never_fits(); })) {
    const RoomOffer& first = offers->front();
    const bool by_group = first.needed_bytes <= first.card.total_bytes;
    return refused("--wait: " + human_bytes(first.needed_bytes) + " will never be free: " +
                   (by_group
                        ? "the group '" + wish_.group + "' has " + human_bytes(*first.group_limit_bytes) + " in all"
                        : gpu_text(first.card) + " has " + human_bytes(first.card.total_bytes) + " in all"));
  }
  return std::nullopt;
}

std::optional<Refusal> Room::wait(const std::string& directory, const std::function<void(const std::string&)>& say,
                                  Card* card, uint64_t* waited_ns) {
  const uint64_t began_ns = wire::monotonic_now_ns();
  uint64_t pause_ns = kFirstPauseNs;
  bool said = false;
  for (;;) {
    std::vector<RoomOffer> offers;
    if (auto refusal = look(directory, &offers)) return refusal;
    *waited_ns = said ? wire::monotonic_now_ns() - began_ns : 0;
    if (const RoomOffer* best = best_offer(offers)) {
      *card = best->card;
      return std::nullopt;
    }
    const std::string text = waiting_text(offers, wish_);
    if (wish_.timeout_ns != 0) {
      const uint64_t passed_ns = wire::monotonic_now_ns() - began_ns;
      if (passed_ns >= wish_.timeout_ns) return refused("gave up waiting for " + text);
      pause_ns = std::min(pause_ns, wish_.timeout_ns - passed_ns);
    }
    if (!said) say(text);
    said = true;
    pause_for(pause_ns);
    pause_ns = std::min(std::max(pause_ns, kFirstPauseNs) * 3 / 2, kLongestPauseNs);
  }
}

}  // namespace gpucap::tools
