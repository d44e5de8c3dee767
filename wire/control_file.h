// What changing a segment and changing a group's file have in common: opening what may be changed, and storing whole
// words in it. For wire/control*.cpp alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "wire/control.h"

namespace gpucap::wire {

struct OpenedFile {
  int fd = -1;
  uint64_t bytes = 0;
  uint32_t owner_uid = 0;
};

// Opens an entry of the directory without following a link. To write, it must be a regular file that has one name and
// belongs to the caller, or the caller is root. On failure nothing stays open.
ControlError open_own_file(int directory_fd, const char* name, bool writable, OpenedFile* file, int* error_number);

// False on a short read too.
bool read_whole(int fd, void* to, uint64_t bytes, uint64_t offset);

// The file as words; an offset must be a multiple of eight and within the file.
class SharedWords {
 public:
  SharedWords(int fd, uint64_t bytes);
  ~SharedWords();
  SharedWords(const SharedWords&) = delete;
  SharedWords& operator=(const SharedWords&) = delete;
  [[nodiscard]] bool ready() const { return base_ != nullptr; }
  [[nodiscard]] std::atomic_ref<uint64_t> at(uint64_t offset) const {
    return std::atomic_ref<uint64_t>(base_[offset / sizeof(uint64_t)]);
  }

 private:
  uint64_t* base_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace gpucap::wire
