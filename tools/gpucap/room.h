// Waiting until a card, and the group's budget on it, has room for a program: `gpucap run --wait`, and the choice of a
// card by --gpu. Asks NVML and the group's file now and then; takes and reserves nothing, so that somebody else may be
// faster.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "shim/core/limits.h"
#include "tools/gpucap/command.h"
#include "tools/gpucap/gpu_name.h"
#include "tools/gpucap/nvml.h"

namespace gpucap::tools {

struct RoomWish {
  std::optional<core::LimitValue> size;  // none: only choose a card
  GpuName gpu;
  uint64_t timeout_ns = 0;  // 0: as long as it takes
  std::string group;        // empty: none
  core::LimitRules group_limits;
};

// One card and what can be had on it.
struct RoomOffer {
  Card card;
  uint64_t needed_bytes = 0;
  std::optional<uint64_t> group_limit_bytes;
  uint64_t group_used_bytes = 0;
  [[nodiscard]] uint64_t free_bytes() const;  // on the card and in the group
  [[nodiscard]] bool fits() const { return free_bytes() >= needed_bytes; }
  [[nodiscard]] bool never_fits() const;  // not even on an empty card with an idle group
};

// The offer to take: the one with the most free memory of those that fit, the first of equal ones. Null if none fits.
const RoomOffer* best_offer(const std::vector<RoomOffer>& offers);

// "8.00 GiB on GPU 0 (3.21 GiB free)", with the group where that is what is short.
std::string waiting_text(const std::vector<RoomOffer>& offers, const RoomWish& wish);

class Room {
 public:
  explicit Room(RoomWish wish) : wish_(std::move(wish)) {}

  // Opens NVML and finds the cards that are asked for; a refusal if there is none, or none is large enough.
  std::optional<Refusal> prepare(const char* visible_devices);
  // Until there is room or time is up. `directory` is where the group's file lies. `say` is called once, if it has to
  // wait at all. *card is the one to use, *waited_ns how long it took.
  std::optional<Refusal> wait(const std::string& directory, const std::function<void(const std::string&)>& say,
                              Card* card, uint64_t* waited_ns);

 private:
  std::optional<Refusal> look(const std::string& directory, std::vector<RoomOffer>* offers);

  RoomWish wish_;
  Nvml nvml_;
  std::vector<Card> cards_;
};

}  // namespace gpucap::tools
