// The shared file of figures: see truth.h. Linked into the fake driver, the fake NVML and fake_truth.
#include "tests/fake_cuda/truth.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace fake {
namespace {

struct ProcessIdentity {
  bool alive = false;
  uint64_t start_ticks = 0;
  uint64_t start_stack = 0;  // 0 when we may not see it
};

ProcessIdentity identify(pid_t pid) {
  ProcessIdentity identity;
  char path[64];
  // Two slashes: qemu-user makes up the file of the process that asks, if it sees through the name.
  std::snprintf(path, sizeof(path), "/proc//%d/stat", static_cast<int>(pid));
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return identity;
  char text[1024];
  const ssize_t length = ::read(fd, text, sizeof(text) - 1);
  ::close(fd);
  if (length <= 0) return identity;
  text[length] = '\0';
  const char* field = std::strrchr(text, ')');  // the command before it may hold anything
  if (field == nullptr || field[1] == '\0') return identity;
  field += 2;
  identity.alive = *field != 'Z' && *field != 'X';
  for (int number = 3; field != nullptr && number <= 28; ++number) {
    if (number == 22) identity.start_ticks = std::strtoull(field, nullptr, 10);
    if (number == 28) identity.start_stack = std::strtoull(field, nullptr, 10);
    field = std::strchr(field, ' ');
    if (field != nullptr) ++field;
  }
  return identity;
}

uint64_t owner_word(pid_t pid, uint64_t start_ticks) {
  return static_cast<uint64_t>(static_cast<uint32_t>(pid)) << 32 | static_cast<uint32_t>(start_ticks);
}

bool still_runs(const TruthSlot& slot, uint64_t owner) {
  const ProcessIdentity identity = identify(static_cast<pid_t>(owner >> 32));
  if (!identity.alive || static_cast<uint32_t>(identity.start_ticks) != static_cast<uint32_t>(owner)) return false;
  const uint64_t stack = slot.start_stack.load();
  return stack == 0 || identity.start_stack == 0 || stack == identity.start_stack;
}

void raise_peak(TruthDevice& device, uint64_t bytes) {
  uint64_t peak = device.peak.load();
  while (peak < bytes && !device.peak.compare_exchange_weak(peak, bytes)) {
  }
}

}  // namespace

uint64_t memory_bytes_of_a_card() {
  const char* text = std::getenv("FAKE_CUDA_MEMORY");
  const uint64_t bytes = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  return bytes == 0 ? 16 * kGiB : bytes;
}

bool Truth::open() {
  if (file_ != nullptr) return true;
  const char* named = std::getenv("FAKE_CUDA_STATE");
  const std::string path =
      named != nullptr && *named != '\0' ? named : "/dev/shm/fake-cards-" + std::to_string(::getuid());
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return false;
  struct stat status {};
  // A file of zeros is a valid empty one, so that it does not matter who comes first.
  const bool sized = ::fstat(fd, &status) == 0 && (static_cast<uint64_t>(status.st_size) >= sizeof(File) ||
                                                   ::ftruncate(fd, static_cast<off_t>(sizeof(File))) == 0);
  void* const base = sized ? ::mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  ::close(fd);
  if (base == MAP_FAILED) return false;
  file_ = static_cast<File*>(base);
  return true;
}

void Truth::take_over(TruthSlot& slot, uint64_t start_stack) {
  for (TruthDevice& device : slot.devices) {
    device.bytes = 0;
    device.pending = 0;
    device.managed = 0;
    device.peak = 0;
  }
  slot.start_stack = start_stack;
  slot.sequence = file_->claims.fetch_add(1) + 1;
  slot.dead = 0;
  own_ = &slot;
}

bool Truth::claim() {
  const ProcessIdentity self = identify(::getpid());
  const uint64_t word = owner_word(::getpid(), self.start_ticks);
  // The image before an exec had the same pid and start time.
  for (TruthSlot& slot : file_->slots) {
    if (slot.owner.load() == word) return take_over(slot, self.start_stack), true;
  }
  for (TruthSlot& slot : file_->slots) {
    uint64_t free_slot = 0;
    if (slot.owner.compare_exchange_strong(free_slot, word)) return take_over(slot, self.start_stack), true;
  }
  sweep();
  for (TruthSlot& slot : file_->slots) {
    uint64_t owner = slot.owner.load();
    if (slot.dead.load() != 0 && slot.owner.compare_exchange_strong(owner, word)) {
      return take_over(slot, self.start_stack), true;
    }
  }
  return false;
}

void Truth::sweep() {
  for (TruthSlot& slot : file_->slots) {
    const uint64_t owner = slot.owner.load(std::memory_order_acquire);
    if (owner == 0) break;  // slots are first taken in order and never become free again, only dead
    if (slot.dead.load() != 0 || still_runs(slot, owner) || slot.owner.load() != owner) continue;
    slot.dead = 1;
    for (TruthDevice& device : slot.devices) {
      device.bytes = 0;
      device.pending = 0;
      device.managed = 0;
    }
  }
}

uint64_t Truth::sum(int device) const {
  uint64_t total = 0;
  for (const TruthSlot& slot : file_->slots) {
    if (slot.owner.load() == 0) break;
    if (slot.dead.load() == 0) total += slot.devices[device].bytes.load() + slot.devices[device].pending.load();
  }
  return total;
}

bool Truth::take(int device, uint64_t bytes, uint64_t memory_bytes) {
  if (bytes == 0) return true;
  if (bytes > memory_bytes) return false;
  TruthDevice& own = own_->devices[device];
  own.pending += bytes;
  bool fits = sum(device) <= memory_bytes;
  if (!fits) {
    sweep();
    fits = sum(device) <= memory_bytes;
  }
  if (fits) raise_peak(own, own.bytes.fetch_add(bytes) + bytes);
  own.pending -= bytes;
  return fits;
}

void Truth::give(int device, uint64_t bytes) { own_->devices[device].bytes -= bytes; }
void Truth::take_managed(int device, uint64_t bytes) { own_->devices[device].managed += bytes; }
void Truth::give_managed(int device, uint64_t bytes) { own_->devices[device].managed -= bytes; }

uint64_t Truth::used(int device) {
  sweep();
  return sum(device);
}

bool Truth::find(pid_t pid, int device, TruthFigures* figures) {
  sweep();
  const TruthSlot* latest = nullptr;
  for (const TruthSlot& slot : file_->slots) {
    const uint64_t owner = slot.owner.load();
    if (owner == 0) break;
    if (static_cast<pid_t>(owner >> 32) != pid) continue;
    if (latest == nullptr || slot.sequence.load() > latest->sequence.load()) latest = &slot;
  }
  if (latest == nullptr) return false;
  const TruthDevice& found = latest->devices[device];
  *figures = {found.bytes, found.managed, found.peak};
  return true;
}

}  // namespace fake
