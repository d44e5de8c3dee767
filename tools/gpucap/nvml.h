// NVML as the launcher and the check need it: which cards CUDA would show to a program started from here, and what is
// free on them. Opened at run time; nothing links against it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpucap::tools {

struct Card {
  void* handle = nullptr;
  uint32_t ordinal = 0;  // as a program with this CUDA_VISIBLE_DEVICES would number it
  std::string uuid;      // "GPU-...", "MIG-..."
  std::string name;
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;
};

class Nvml {
 public:
  Nvml() = default;
  ~Nvml();  // gives NVML's descriptors back, so that no program inherits them
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // False with the reason if NVML is not there or does not start.
  bool open(std::string* reason);
  [[nodiscard]] std::string driver_version() const;  // empty if it does not say

  // Cards and MIG instances that `visible` (the text of CUDA_VISIBLE_DEVICES, nullptr where it is unset) shows, by
  // ordinal. A card split into instances is not among them; its instances are.
  [[nodiscard]] std::vector<Card> visible_cards(const char* visible) const;
  // Brings the card's total and free up to date. False if NVML does not tell.
  bool read_memory(Card* card) const;

  enum class ProcessFigures { kGiven, kHidden, kNoProcess, kUnknown };
  // Whether the card's list of processes says how much each has.
  [[nodiscard]] ProcessFigures process_figures(const Card& card) const;

 private:
  [[nodiscard]] bool describe(void* handle, Card* card) const;
  [[nodiscard]] std::vector<Card> instances_of(void* handle) const;

  using Return = int;
  struct Memory {
    unsigned long long total, free, used;
  };
  struct Process {
    unsigned int pid;
    unsigned long long used_bytes;
    unsigned int gpu_instance, compute_instance;
  };
  void* library_ = nullptr;
  bool started_ = false;
  Return (*shutdown_)() = nullptr;
  Return (*driver_version_)(char*, unsigned int) = nullptr;
  Return (*count_)(unsigned int*) = nullptr;
  Return (*by_index_)(unsigned int, void**) = nullptr;
  Return (*uuid_)(void*, char*, unsigned int) = nullptr;
  Return (*name_)(void*, char*, unsigned int) = nullptr;
  Return (*memory_)(void*, Memory*) = nullptr;
  Return (*processes_)(void*, unsigned int*, Process*) = nullptr;
  Return (*instance_count_)(void*, unsigned int*) = nullptr;
  Return (*instance_)(void*, unsigned int, void**) = nullptr;
};

}  // namespace gpucap::tools
