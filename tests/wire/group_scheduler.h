// Runs several members of one group as fibers of one thread, on one piece of memory, and decides before every access to
// a shared word who goes next, who is killed and who is buried. The members are the real code of wire/group_member.cpp,
// compiled with GPUCAP_TEST_ACCESSES; whether a member lives, sleeping and the clock are answered here.
// Used by group_interleaving_test.cpp alone. Not thread-safe: one World at a time.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "wire/group_member.h"

namespace gpucap::wire {

struct Operation {
  enum class Kind { kTry, kCareful, kGive, kWait, kEndWait, kJoin };
  Kind kind;
  uint64_t bytes = 0;  // of a give: 0 gives back all that was granted
};

// One thread of one member. One that begins with kJoin is of a new member, which takes the slot of that one when it is
// dead.
struct Script {
  size_t slot;
  std::vector<Operation> operations;
};

struct Scenario {
  const char* name;
  int64_t limit_bytes;
  std::vector<int64_t> held_at_first;  // one a slot
  std::vector<Script> scripts;
  std::vector<size_t> may_be_killed = {};  // slots; one member is killed, at any moment or never
  bool dies_slowly = false;                // between its death and its memory's there is a while
  int most_rounds = 2;                     // times that one call may sleep or yield before the order is given up
};

// What can happen next: a fiber goes to its next access (>= 0), or somebody is killed or buried.
using Choice = int;
inline constexpr Choice kKill = -1, kBury = -101;  // less the slot's number

class World {
 public:
  explicit World(const Scenario& scenario);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void restart();
  // Nothing: all have ended.
  void options(std::vector<Choice>* out) const;
  void take(Choice choice);
  // Two moments with the same hash have the same future: shared words, lives, and all that each fiber has read so far.
  [[nodiscard]] uint64_t hash() const;
  // Why this moment must not be, or empty.
  [[nodiscard]] std::string breach() const;
  // The same when all have ended.
  [[nodiscard]] std::string breach_at_the_end() const;
  // One call went round more often than the scenario allows.
  [[nodiscard]] bool given_up() const { return given_up_; }
  [[nodiscard]] int granted_count() const { return granted_count_; }
  [[nodiscard]] bool has_ended(size_t fiber) const { return fibers_[fiber]->done; }
  [[nodiscard]] uint64_t slept_ns(size_t fiber) const { return fibers_[fiber]->slept_ns; }

  // Called from within a fiber.
  void before_access(const void* word, unsigned bytes);
  void before_rest(long ns);
  GroupLife life_of(uint32_t number);
  uint64_t now_ns();

 private:
  struct Fiber {
    size_t number = 0;
    const Script* script = nullptr;
    GroupMember* member = nullptr;
    bool joins = false;
    bool done = false, dead = false;
    bool rests = false;  // has yielded or sleeps, and nobody else has gone on since
    int rounds = 0;
    uint64_t read = 0;  // hash of all that it has seen
    uint64_t slept_ns = 0;
    int64_t granted_bytes = 0;
    uint64_t ticket = 0;
    int64_t wanted_bytes = -1;  // of a careful call under way
    bool was_full = false;      // at some moment of that call
    bool begun = false, restart = false;
    jmp_buf here, start;
    std::vector<uint64_t> stack = std::vector<uint64_t>(4096);
  };
  static void enter(unsigned high, unsigned low);
  void run_script(Fiber& fiber);
  void carry_out(Fiber& fiber, const Operation& operation);
  void resume(Fiber& fiber);
  void stop_here(Fiber& fiber);
  [[nodiscard]] bool can_go_on(const Fiber& fiber) const;
  [[nodiscard]] int64_t held_on_the_card() const;
  [[nodiscard]] gpucap_group_slot& slot(size_t number) const;

  const Scenario& scenario_;
  std::vector<uint64_t> memory_;  // the group's file
  gpucap_group_header* header_;
  std::vector<std::unique_ptr<GroupMember>> members_;  // one a slot, then one for each that joins
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<GroupLife> lives_;
  jmp_buf scheduler_;
  Fiber* current_ = nullptr;
  bool killed_ = false;
  bool given_up_ = false;
  int granted_count_ = 0;
  std::string complaint_;
};

}  // namespace gpucap::wire
