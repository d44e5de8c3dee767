// The one file that all processes on this fake machine share: how many bytes of which card each process holds, as NVML
// would show it. The fake driver writes its own slot, the fake NVML and fake_truth read all of them. Atomics only, so
// that a process killed at any instruction leaves nothing locked; its slot stops counting as soon as anybody looks.
// Managed memory stands apart: NVML does not count it to the process.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "tests/fake_cuda/sizes.h"

namespace fake {

struct TruthDevice {
  std::atomic<uint64_t> bytes;
  std::atomic<uint64_t> pending;  // claimed by a request that is not granted yet; takes room, is nobody's figure
  std::atomic<uint64_t> managed;
  std::atomic<uint64_t> peak;  // highest `bytes` ever
};

struct TruthSlot {
  std::atomic<uint64_t> owner;        // pid << 32 | low half of the process's start time; 0 is free
  std::atomic<uint64_t> start_stack;  // tells a new image after exec from the one before; 0 is unknown
  std::atomic<uint64_t> sequence;     // order of claims, to find the latest of a reused pid
  std::atomic<uint64_t> dead;         // 1: the process is gone, only the peaks are left
  TruthDevice devices[kMostDevices];
};

struct TruthFigures {
  uint64_t bytes = 0;
  uint64_t managed = 0;
  uint64_t peak = 0;
};

class Truth {
 public:
  static constexpr int kSlots = 4096;

  // Maps the file of FAKE_CUDA_STATE (default /dev/shm/fake-cards-<uid>), making it if needed. False if that fails.
  bool open();
  // Takes a slot for the calling process. False if all are taken by living processes.
  bool claim();

  // Adds to this process's figure unless the card is too full for it.
  [[nodiscard]] bool take(int device, uint64_t bytes, uint64_t memory_bytes);
  void give(int device, uint64_t bytes);
  void take_managed(int device, uint64_t bytes);
  void give_managed(int device, uint64_t bytes);

  // Sum over all living processes.
  uint64_t used(int device);
  // Calls visit(pid, figures of `device`) for each living process that has a slot.
  template <class Visit>
  void each(int device, Visit visit);
  // The figures of one process, living or not. False if it never had a slot, or its slot was needed for another.
  bool find(pid_t pid, int device, TruthFigures* figures);
  // All slots as they are at this moment, the taken ones first; who is dead shows after a call of the above.
  [[nodiscard]] const TruthSlot* slots() const { return file_->slots; }

 private:
  struct File {
    std::atomic<uint64_t> claims;
    TruthSlot slots[kSlots];
  };

  void sweep();
  uint64_t sum(int device) const;
  void take_over(TruthSlot& slot, uint64_t start_stack);

  File* file_ = nullptr;
  TruthSlot* own_ = nullptr;
};

// FAKE_CUDA_MEMORY, or 16 GiB.
uint64_t memory_bytes_of_a_card();

template <class Visit>
void Truth::each(int device, Visit visit) {
  sweep();
  for (TruthSlot& slot : file_->slots) {
    const uint64_t owner = slot.owner.load(std::memory_order_acquire);
    if (owner == 0 || slot.dead.load() != 0) continue;
    const TruthDevice& figures = slot.devices[device];
    visit(static_cast<pid_t>(owner >> 32), TruthFigures{figures.bytes, figures.managed, figures.peak});
  }
}

}  // namespace fake
