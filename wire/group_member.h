// This process as a member of a group: one budget a device that several processes share. Called by the shim's quota,
// from any thread; one object a process. No lock in shared memory: a member adds to its own slot and then sums all of
// them, and the kernel says who lives (group_layout.h). SIGKILL at any instruction leaves nothing that others wait for.
//
// Never closes its file while the process lives: that would drop its locks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "wire/group_layout.h"
#include "wire/group_life.h"
#include "wire/kept_file.h"
#include "wire/layout.h"

namespace gpucap::wire {

enum class GroupError {
  kNone,
  kNoDirectory,
  kForeignDirectory,
  kCannotOpen,
  kNotAGroup,  // a file of that name that is not one, or of another version
  kNoSpace,
  kCannotMap,
  kBusy,  // somebody held the gate for seconds: a member that was stopped in the middle of joining
  kFull,  // no slot, or no room for another device
};
const char* to_text(GroupError error);

class GroupMember {
 public:
  // Joins the group of that name, which is made if it does not exist. Any failure leaves nothing behind.
  GroupError join(const char* directory, bool directory_is_default, const char* name, int* error_number);
  [[nodiscard]] bool joined() const { return header_ != nullptr; }
  [[nodiscard]] const char* name() const { return header_->name; }

  // The group's number of a device. The first limit that anybody gives stands; `limit_bytes` all ones gives none.
  // *standing_bytes is what stands.
  GroupError add_device(const uint8_t (&uuid)[16], uint64_t limit_bytes, int* number, uint64_t* standing_bytes);
  [[nodiscard]] uint64_t limit(int device) const;

  enum class Answer : uint8_t {
    kGranted,
    kNoRoom,
    kQueued,  // there may be room, but somebody who came first waits for it
  };
  // Takes `bytes` of the budget, bounded by the group's limit and by `bound_bytes`. `ticket`: of a waiting caller;
  // kLast for one that has to stand behind all who wait; kNoQueue for one that need not stand in line. Gives up where
  // the figures are in doubt: then try_reserve_carefully().
  static constexpr uint64_t kNoQueue = 0;
  static constexpr uint64_t kLast = UINT64_MAX;
  Answer try_reserve(int device, uint64_t bytes, uint64_t bound_bytes, uint64_t ticket);
  // The same for one thread at a time: leaves the dead out, waits for those that are dying, and gives way or has its
  // way where several ask at once. kNoRoom is certain: at some moment of the call what the members held left no room;
  // or somebody else was stopped while it asked, and did not go on for 50 ms.
  Answer try_reserve_carefully(int device, uint64_t bytes, uint64_t bound_bytes, uint64_t ticket);
  // What this process holds changed by so much; without asking.
  void change(int device, int64_t delta);

  // What a context takes on the device, as members before found it; 0: not known yet. So that a newcomer's first one
  // can be asked for before it is made.
  [[nodiscard]] uint64_t context_bytes(int device) const;
  void note_context(int device, uint64_t bytes);

  // What all living members hold together, and how many they are. Asks the kernel about those that hold anything if
  // `certain`.
  struct Use {
    int64_t bytes = 0;
    int members = 0;
  };
  Use use(int device, bool certain);

  // Stands in line for room on the device; one thread at a time. The ticket is for the tries that follow.
  uint64_t begin_wait(int device, uint64_t bytes);
  void end_wait(int device);
  // Whether every living member that holds memory there waits, so that none of it can come free, and this one came
  // last.
  bool is_last_of_a_deadlock(int device);

  // Takes the lock again if the program closed our descriptor. A few system calls: now and then.
  void keep_alive();
  // At the end of the process. What it holds stays counted until the kernel has taken the process down.
  void leave();

 private:
  friend struct GroupMemberForTest;  // sets up members without a file

  struct Sum {
    int64_t held = 0;
    int64_t asked = 0;
    uint64_t first_ticket = 0;  // the lowest of the others'; 0: none waits
    int lowest_asking = -1;     // the lowest slot of others that asks right now
    uint64_t fingerprint = 0;   // of everybody's held bytes
  };

  GroupError open_or_make(int directory_fd, const char* file_name, const char* name, int* fd, int* error_number);
  GroupError take_slot();
  // What a new member does to the words that others read: the shares of the one before first.
  static void clear(gpucap_group_share& share);
  static void begin_incarnation(gpucap_group_slot& slot);
  gpucap_group_slot* slot(uint32_t number) const;
  gpucap_group_share& share(int device) const;
  [[nodiscard]] bool known_dead(uint32_t number, uint64_t incarnation) const;
  Sum sum(int device) const;
  static Answer decide(gpucap_group_share& own, const Sum& sum, int64_t bytes, int64_t limit, uint64_t ticket);
  GroupLife life_of(uint32_t number) const;
  // Marks the dead that count on this device; returns whether a dying one still does.
  bool look_for_the_dead(int device);
  bool pass_gate(uint64_t at_most_ns);
  void leave_gate();

  KeptFile file_;
  gpucap_group_header* header_ = nullptr;
  uint32_t own_ = 0;
  int owner_pid_ = 0;
  std::atomic<bool> keeping_{false};
  std::atomic<uint64_t> dead_[GPUCAP_GROUP_SLOTS] = {};  // incarnation + 1 of the member found dead, 0: none was
};

}  // namespace gpucap::wire
