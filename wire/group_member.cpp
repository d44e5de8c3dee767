// The budget's arithmetic over all members: see group_member.h. How one joins and leaves is in group_join.cpp.
//
// Why the sum can never pass the limit: whoever takes memory first adds to its own `asked`, then reads everybody's
// words, and only then moves the bytes to `held`, adding there before it subtracts here. Readers take `asked` before
// `held`. So of two that ask at once at least one sees the other, and bytes on their way may be seen twice, never not
// at all. Every access is sequentially consistent.
#include "wire/group_member.h"

#include <sched.h>
#include <time.h>

#include "wire/files.h"
#include "wire/steps.h"

namespace gpucap::wire {
namespace {

constexpr int kDoubtfulTries = 50;
constexpr uint64_t kConflictAtMost_ns = 50'000'000;
constexpr int kYields = 20;
constexpr uint64_t kDyingAtMost_ns = 2'000'000'000;

template <typename T>
T load(const T& word) {
  GPUCAP_ACCESS(word);
  return std::atomic_ref<T>(const_cast<T&>(word)).load();
}
template <typename T>
void store(T& word, T value) {
  GPUCAP_ACCESS(word);
  std::atomic_ref<T>(word).store(value);
}
void add(int64_t& word, int64_t delta) {
  GPUCAP_ACCESS(word);
  std::atomic_ref<int64_t>(word).fetch_add(delta);
}

int64_t signed_bytes(uint64_t bytes) { return bytes > INT64_MAX / 4 ? INT64_MAX / 4 : static_cast<int64_t>(bytes); }

void pause_ns(long ns) {
  const timespec time = {0, ns};
  nanosleep(&time, nullptr);
}

}  // namespace

uint64_t GroupMember::limit(int device) const { return load(header_->devices[device].limit_bytes); }

uint64_t GroupMember::context_bytes(int device) const { return load(header_->devices[device].context_bytes); }
void GroupMember::note_context(int device, uint64_t bytes) { store(header_->devices[device].context_bytes, bytes); }

gpucap_group_slot* GroupMember::slot(uint32_t number) const {
  char* first = static_cast<char*>(static_cast<void*>(header_)) + header_->header_bytes;
  return static_cast<gpucap_group_slot*>(static_cast<void*>(first)) + number;
}

gpucap_group_share& GroupMember::share(int device) const { return slot(own_)->shares[device]; }

bool GroupMember::known_dead(uint32_t number, uint64_t incarnation) const {
  return dead_[number].load(std::memory_order_relaxed) == incarnation + 1;
}

GroupMember::Sum GroupMember::sum(int device) const {
  Sum sum;
  const uint32_t count = load(header_->highest_slot);
  for (uint32_t i = 0; i < count && i < GPUCAP_GROUP_SLOTS; ++i) {
    const gpucap_group_slot& member = *slot(i);
    const gpucap_group_share& share = member.shares[device];
    if (known_dead(i, load(member.incarnation))) continue;
    const int64_t asked = load(share.asked_bytes);
    GPUCAP_STEP("sum:between");
    const int64_t held = load(share.held_bytes);
    sum.asked += asked;
    sum.held += held;
    sum.fingerprint = (sum.fingerprint ^ static_cast<uint64_t>(held)) * 0x9e3779b97f4a7c15u;
    if (i == own_) continue;
    if (asked != 0 && sum.lowest_asking < 0) sum.lowest_asking = static_cast<int>(i);
    const uint64_t ticket = load(share.wait_ticket);
    if (ticket != 0 && (sum.first_ticket == 0 || ticket < sum.first_ticket)) sum.first_ticket = ticket;
  }
  return sum;
}

GroupMember::Answer GroupMember::decide(gpucap_group_share& own, const Sum& sum, int64_t bytes, int64_t limit,
                                        uint64_t ticket) {
  if (sum.held + sum.asked > limit) return Answer::kNoRoom;
  if (ticket != kNoQueue && sum.first_ticket != 0 && sum.first_ticket < ticket) return Answer::kQueued;
  GPUCAP_STEP("reserve:before-held");
  add(own.held_bytes, bytes);
  GPUCAP_STEP("reserve:between-held-and-asked");
  add(own.asked_bytes, -bytes);
  GPUCAP_STEP("reserve:granted");
  return Answer::kGranted;
}

GroupMember::Answer GroupMember::try_reserve(int device, uint64_t bytes, uint64_t bound_bytes, uint64_t ticket) {
  uint64_t most = limit(device);
  if (bound_bytes < most) most = bound_bytes;
  gpucap_group_share& own = share(device);
  const int64_t wanted = signed_bytes(bytes);
  if (most == GPUCAP_WIRE_NO_LIMIT) {
    add(own.held_bytes, wanted);
    return Answer::kGranted;
  }
  if (bytes > most) return Answer::kNoRoom;
  GPUCAP_STEP("reserve:before-asked");
  add(own.asked_bytes, wanted);
  GPUCAP_STEP("reserve:asked");
  const Answer answer = decide(own, sum(device), wanted, signed_bytes(most), ticket);
  if (answer != Answer::kGranted) add(own.asked_bytes, -wanted);
  GPUCAP_STEP("reserve:withdrawn");
  return answer;
}

GroupMember::Answer GroupMember::try_reserve_carefully(int device, uint64_t bytes, uint64_t bound_bytes,
                                                       uint64_t ticket) {
  gpucap_group_share& own = share(device);
  const int64_t wanted = signed_bytes(bytes);
  const uint64_t give_up_ns = monotonic_now_ns() + kDyingAtMost_ns;
  int doubtful = 0;
  int conflicts = 0;
  uint64_t first_conflict_ns = 0;
  bool asking = false;
  Answer answer = Answer::kNoRoom;
  for (;;) {
    uint64_t most = limit(device);
    if (bound_bytes < most) most = bound_bytes;
    if (bytes > most) break;
    const int64_t limit = signed_bytes(most);
    const bool dying = look_for_the_dead(device);
    if (!asking) add(own.asked_bytes, wanted);
    asking = true;
    GPUCAP_STEP("careful:asked");
    const Sum now = sum(device);
    answer = decide(own, now, wanted, limit, ticket);
    if (answer == Answer::kGranted) return answer;
    if (answer == Answer::kQueued) break;
    if (now.held + wanted > limit) {
      // No room, whoever else asks. Certain if nothing moved while we read; words read one by one may else show a sum
      // that never was.
      const Sum again = sum(device);
      if (again.fingerprint != now.fingerprint && ++doubtful < kDoubtfulTries) continue;
      if (!dying || monotonic_now_ns() > give_up_ns) break;
      add(own.asked_bytes, -wanted);
      asking = false;
      pause_ns(1'000'000);
      continue;
    }
    // Others ask at this moment and there is not room for all: the lowest slot keeps asking, the others step back, for
    // longer each time. Whoever asks may have lost its processor in the middle of it, so it is given time.
    const uint64_t now_ns = monotonic_now_ns();
    if (conflicts++ == 0) first_conflict_ns = now_ns;
    if (now_ns - first_conflict_ns > kConflictAtMost_ns) break;
    if (now.lowest_asking >= 0 && static_cast<uint32_t>(now.lowest_asking) < own_) {
      add(own.asked_bytes, -wanted);
      asking = false;
      GPUCAP_STEP("careful:stepped-back");
      pause_ns((20'000L << (conflicts < 6 ? conflicts - 1 : 5)) + 1'000 * static_cast<long>(own_ % 64));
    } else if (conflicts < kYields) {
      sched_yield();
    } else {
      pause_ns(50'000);
    }
  }
  if (asking) add(own.asked_bytes, -wanted);
  GPUCAP_STEP("careful:refused");
  return answer;
}

void GroupMember::change(int device, int64_t delta) {
  if (delta != 0) add(share(device).held_bytes, delta);
}

bool GroupMember::look_for_the_dead(int device) {
  bool dying = false;
  const uint32_t count = load(header_->highest_slot);
  for (uint32_t i = 0; i < count && i < GPUCAP_GROUP_SLOTS; ++i) {
    const gpucap_group_slot& member = *slot(i);
    const gpucap_group_share& share = member.shares[device];
    const uint64_t incarnation = load(member.incarnation);
    if (i == own_ || known_dead(i, incarnation)) continue;
    if (load(share.asked_bytes) == 0 && load(share.held_bytes) == 0 && load(share.wait_ticket) == 0) continue;
    const GroupLife life = life_of(i);
    // Whoever joined into the slot meanwhile has another incarnation and is not meant.
    if (life == GroupLife::kDead) dead_[i].store(incarnation + 1, std::memory_order_relaxed);
    if (life == GroupLife::kDying) dying = true;
  }
  return dying;
}

GroupMember::Use GroupMember::use(int device, bool certain) {
  if (certain) look_for_the_dead(device);
  Use use;
  const uint32_t count = load(header_->highest_slot);
  for (uint32_t i = 0; i < count && i < GPUCAP_GROUP_SLOTS; ++i) {
    if (known_dead(i, load(slot(i)->incarnation))) continue;
    const int64_t held = load(slot(i)->shares[device].held_bytes);
    use.bytes += held;
    use.members += held != 0 ? 1 : 0;
  }
  return use;
}

void GroupMember::clear(gpucap_group_share& share) {
  store(share.wait_ticket, uint64_t{0});
  store(share.asked_bytes, int64_t{0});
  store(share.held_bytes, int64_t{0});
}

void GroupMember::begin_incarnation(gpucap_group_slot& slot) {
  GPUCAP_ACCESS(slot.incarnation);
  // From here on those who knew the one before to be dead count us.
  std::atomic_ref<uint64_t>(slot.incarnation).fetch_add(1);
}

uint64_t GroupMember::begin_wait(int device, uint64_t bytes) {
  gpucap_group_share& own = share(device);
  GPUCAP_ACCESS(header_->next_ticket);
  const uint64_t ticket = std::atomic_ref<uint64_t>(header_->next_ticket).fetch_add(1);
  GPUCAP_STEP("wait:ticket");
  store(own.wait_bytes, bytes);
  store(own.wait_ticket, ticket);
  GPUCAP_STEP("wait:in-line");
  return ticket;
}

void GroupMember::end_wait(int device) {
  store(share(device).wait_ticket, uint64_t{0});
  store(share(device).wait_bytes, uint64_t{0});
}

bool GroupMember::is_last_of_a_deadlock(int device) {
  const gpucap_group_share& own = share(device);
  const uint64_t own_ticket = load(own.wait_ticket);
  if (own_ticket == 0 || load(own.held_bytes) <= 0) return false;
  look_for_the_dead(device);
  const uint32_t count = load(header_->highest_slot);
  for (uint32_t i = 0; i < count && i < GPUCAP_GROUP_SLOTS; ++i) {
    const gpucap_group_share& other = slot(i)->shares[device];
    if (i == own_ || known_dead(i, load(slot(i)->incarnation)) || load(other.held_bytes) <= 0) continue;
    const uint64_t ticket = load(other.wait_ticket);
    if (ticket == 0 || ticket > own_ticket) return false;
  }
  return true;
}

}  // namespace gpucap::wire
