// What the cards of this machine hold altogether, which only NVML knows. The library is opened when it is there and
// missed without harm: every figure is then unknown, and why() says so. Used by the screen's collector.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpucap::tools {

using CardUuid = std::array<uint8_t, 16>;

struct CardUse {
  uint32_t number = 0;  // NVML's index; instances of a divided card come after all cards
  std::string name;
  CardUuid uuid = {};
  std::optional<uint64_t> total_bytes;
  std::optional<uint64_t> used_bytes;
  uint64_t reserved_bytes = 0;
};

class CardNvml {
 public:
  CardNvml();
  ~CardNvml();
  CardNvml(const CardNvml&) = delete;
  CardNvml& operator=(const CardNvml&) = delete;

  // Asks again how full every card is.
  void refresh();
  // A card or instance that was not in the list: looked up once by its UUID.
  void want(const CardUuid& uuid);
  [[nodiscard]] const std::vector<CardUse>& cards() const { return cards_; }
  [[nodiscard]] const std::string& why() const { return why_; }  // empty: NVML works

 private:
  void ask(size_t index);
  [[nodiscard]] void* function(const char* name) const;

  void* library_ = nullptr;
  bool started_ = false;
  std::string why_;
  std::vector<CardUse> cards_;
  std::vector<void*> handles_;  // of the same index
  std::vector<CardUuid> asked_for_;
};

std::string uuid_text(const CardUuid& uuid, const char* prefix);
std::optional<CardUuid> parse_uuid(const std::string& text);  // whatever its prefix

}  // namespace gpucap::tools
