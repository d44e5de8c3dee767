// See group_scheduler.h. Also stands in for what the members ask of the system: nanosleep and sched_yield (for the
// whole test program), the clock, and life_of().
#include "tests/wire/group_scheduler.h"

#include <sched.h>
#include <time.h>
#include <ucontext.h>

#include <cstring>

namespace gpucap::wire {
namespace {

World* world = nullptr;

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

}  // namespace

struct GroupMemberForTest {
  static void place(GroupMember& member, gpucap_group_header* header, size_t slot) {
    member.header_ = header;
    member.own_ = static_cast<uint32_t>(slot);
  }
  static void forget_the_dead(GroupMember& member, size_t slots) {
    for (size_t i = 0; i < slots; ++i) member.dead_[i].store(0, std::memory_order_relaxed);
  }
  static uint64_t known_dead(const GroupMember& member, size_t slot) { return member.dead_[slot].load(); }
  static void clear(gpucap_group_slot& slot) { GroupMember::clear(slot.shares[0]); }
  static void begin_incarnation(gpucap_group_slot& slot) { GroupMember::begin_incarnation(slot); }
};

World::World(const Scenario& scenario)
    : scenario_(scenario),
      memory_((sizeof(gpucap_group_header) + scenario.held_at_first.size() * sizeof(gpucap_group_slot)) / 8),
      header_(static_cast<gpucap_group_header*>(static_cast<void*>(memory_.data()))) {
  world = this;
  const size_t slots = scenario.held_at_first.size();
  for (size_t i = 0; i < slots; ++i) {
    members_.push_back(std::make_unique<GroupMember>());
    GroupMemberForTest::place(*members_.back(), header_, i);
  }
  for (const Script& script : scenario.scripts) {
    auto fiber = std::make_unique<Fiber>();
    fiber->number = fibers_.size();
    fiber->script = &script;
    fiber->joins = script.operations[0].kind == Operation::Kind::kJoin;
    fiber->member = members_[script.slot].get();
    if (fiber->joins) {
      members_.push_back(std::make_unique<GroupMember>());
      GroupMemberForTest::place(*members_.back(), header_, script.slot);
      fiber->member = members_.back().get();
    }
    fibers_.push_back(std::move(fiber));
  }
  restart();
}

World::~World() { world = nullptr; }

gpucap_group_slot& World::slot(size_t number) const {
  return static_cast<gpucap_group_slot*>(static_cast<void*>(header_ + 1))[number];
}

void World::restart() {
  const size_t slots = scenario_.held_at_first.size();
  header_->header_bytes = sizeof(gpucap_group_header);
  header_->highest_slot = static_cast<uint32_t>(slots);
  header_->next_ticket = 1;
  header_->devices[0].limit_bytes = static_cast<uint64_t>(scenario_.limit_bytes);
  lives_.assign(slots, GroupLife::kAlive);
  for (size_t i = 0; i < slots; ++i) {
    slot(i).incarnation = 1;
    slot(i).shares[0] = {scenario_.held_at_first[i], 0, 0, 0};
  }
  for (const auto& member : members_) GroupMemberForTest::forget_the_dead(*member, slots);
  for (const auto& fiber : fibers_) {
    fiber->done = fiber->dead = fiber->rests = fiber->was_full = false;
    fiber->rounds = 0;
    fiber->read = fiber->slept_ns = fiber->ticket = 0;
    fiber->granted_bytes = 0;
    fiber->wanted_bytes = -1;
    fiber->restart = true;
  }
  killed_ = given_up_ = false;
  granted_count_ = 0;
  complaint_.clear();
}

bool World::can_go_on(const Fiber& fiber) const {
  if (fiber.done || fiber.dead) return false;
  // The new one comes when its slot is free, and then it lives.
  return !fiber.joins || fiber.read != 0 || lives_[fiber.script->slot] == GroupLife::kDead;
}

void World::options(std::vector<Choice>* out) const {
  out->clear();
  bool somebody_is_awake = false;
  for (const auto& fiber : fibers_) {
    if (!can_go_on(*fiber) || fiber->rests) continue;
    somebody_is_awake = true;
    out->push_back(static_cast<Choice>(fiber->number));
  }
  for (size_t i = 0; i < lives_.size(); ++i)
    if (lives_[i] == GroupLife::kDying) out->push_back(kBury - static_cast<Choice>(i));
  // All sleep: time goes by. Who waits for a burial sees it.
  if (!somebody_is_awake && out->empty()) {
    for (const auto& fiber : fibers_)
      if (can_go_on(*fiber)) out->push_back(static_cast<Choice>(fiber->number));
  }
  if (!killed_)
    for (const size_t slot : scenario_.may_be_killed) out->push_back(kKill - static_cast<Choice>(slot));
}

void World::take(Choice choice) {
  if (choice > kKill) {
    resume(*fibers_[static_cast<size_t>(choice)]);
  } else if (choice > kBury) {
    const auto number = static_cast<size_t>(kKill - choice);
    killed_ = true;
    lives_[number] = scenario_.dies_slowly ? GroupLife::kDying : GroupLife::kDead;
    for (const auto& fiber : fibers_)
      if (fiber->script->slot == number && !fiber->joins) fiber->dead = true;
  } else {
    lives_[static_cast<size_t>(kBury - choice)] = GroupLife::kDead;
  }
  const auto gone = static_cast<size_t>(choice);
  const int64_t held = held_on_the_card();
  for (const auto& fiber : fibers_) {
    if (fiber->number != gone || choice < 0) fiber->rests = false;
    if (fiber->wanted_bytes >= 0 && held + fiber->wanted_bytes > scenario_.limit_bytes) fiber->was_full = true;
  }
}

int64_t World::held_on_the_card() const {
  int64_t sum = 0;
  for (size_t i = 0; i < lives_.size(); ++i)
    if (lives_[i] != GroupLife::kDead) sum += slot(i).shares[0].held_bytes;
  return sum;
}

uint64_t World::hash() const {
  uint64_t hash = mix(killed_ ? 1 : 2, header_->next_ticket);
  for (size_t i = 0; i < lives_.size(); ++i) {
    const gpucap_group_share& share = slot(i).shares[0];
    hash = mix(hash, static_cast<uint64_t>(lives_[i]));
    hash = mix(hash, slot(i).incarnation);
    hash = mix(hash, static_cast<uint64_t>(share.held_bytes) << 32 ^ static_cast<uint64_t>(share.asked_bytes));
    hash = mix(hash, share.wait_ticket << 32 ^ share.wait_bytes);
  }
  for (const auto& fiber : fibers_) {
    hash = mix(hash, fiber->read);
    hash = mix(hash, (fiber->done ? 1u : 0u) | (fiber->dead ? 2u : 0u) | (fiber->rests ? 4u : 0u) |
                         (fiber->was_full ? 8u : 0u));
  }
  return hash;
}

std::string World::breach() const {
  if (!complaint_.empty()) return complaint_;
  if (const int64_t held = held_on_the_card(); held > scenario_.limit_bytes)
    return "the living hold " + std::to_string(held) + " of " + std::to_string(scenario_.limit_bytes);
  return "";
}

std::string World::breach_at_the_end() const {
  for (size_t i = 0; i < lives_.size(); ++i) {
    if (lives_[i] != GroupLife::kAlive) continue;
    const gpucap_group_share& share = slot(i).shares[0];
    int64_t held = scenario_.held_at_first[i];
    for (const auto& fiber : fibers_) {
      if (fiber->script->slot != i || fiber->dead) continue;
      if (fiber->joins && fiber->read != 0) held = 0;
      held += fiber->granted_bytes;
    }
    if (share.asked_bytes != 0)
      return "slot " + std::to_string(i) + " still asks for " + std::to_string(share.asked_bytes);
    if (share.held_bytes != held)
      return "slot " + std::to_string(i) + " holds " + std::to_string(share.held_bytes) + ", not " +
             std::to_string(held);
  }
  return "";
}

void World::enter(unsigned high, unsigned low) {
  auto* fiber = static_cast<Fiber*>(reinterpret_cast<void*>(uint64_t{high} << 32 | low));
  _setjmp(fiber->start);
  fiber->restart = false;
  world->run_script(*fiber);
  fiber->done = true;
  world->stop_here(*fiber);
}

// To the fiber's next access, and on to right before the one after that.
void World::resume(Fiber& fiber) {
  current_ = &fiber;
  if (_setjmp(scheduler_) == 0) {
    if (fiber.begun) _longjmp(fiber.here, 1);
    fiber.begun = true;
    ucontext_t context, back;
    getcontext(&context);
    context.uc_stack.ss_sp = fiber.stack.data();
    context.uc_stack.ss_size = fiber.stack.size() * sizeof(uint64_t);
    context.uc_link = nullptr;
    const auto address = reinterpret_cast<uint64_t>(&fiber);
    makecontext(&context, reinterpret_cast<void (*)()>(&World::enter), 2, static_cast<unsigned>(address >> 32),
                static_cast<unsigned>(address));
    swapcontext(&back, &context);
  }
  current_ = nullptr;
}

void World::stop_here(Fiber& fiber) {
  if (_setjmp(fiber.here) == 0) _longjmp(scheduler_, 1);
  if (fiber.restart) _longjmp(fiber.start, 1);
}

void World::before_access(const void* word, unsigned bytes) {
  // Words that nobody changes here are read along with the one before.
  if (word == &header_->highest_slot || word == &header_->devices[0].limit_bytes) return;
  Fiber& fiber = *current_;
  stop_here(fiber);
  uint64_t value = 0;
  memcpy(&value, word, bytes);
  fiber.read = mix(mix(fiber.read, reinterpret_cast<uint64_t>(word) & 0xffff), value);
  for (size_t i = 0; i < lives_.size(); ++i)
    fiber.read = mix(fiber.read, GroupMemberForTest::known_dead(*fiber.member, i));
}

void World::before_rest(long ns) {
  Fiber& fiber = *current_;
  fiber.slept_ns += static_cast<uint64_t>(ns);
  if (++fiber.rounds > scenario_.most_rounds) given_up_ = true;
  fiber.rests = true;
  stop_here(fiber);
  fiber.read = mix(fiber.read, 3);
}

GroupLife World::life_of(uint32_t number) {
  const GroupLife life = lives_[number];
  current_->read = mix(current_->read, 5 + static_cast<uint64_t>(life));
  return life;
}

uint64_t World::now_ns() { return current_->slept_ns; }

void World::run_script(Fiber& fiber) {
  fiber.read = mix(fiber.read, 1);
  for (const Operation& operation : fiber.script->operations) carry_out(fiber, operation);
}

void World::carry_out(Fiber& fiber, const Operation& operation) {
  GroupMember& member = *fiber.member;
  using Kind = Operation::Kind;
  using Answer = GroupMember::Answer;
  Answer answer = Answer::kQueued;
  switch (operation.kind) {
    case Kind::kJoin:
      GroupMemberForTest::clear(slot(fiber.script->slot));
      lives_[fiber.script->slot] = GroupLife::kAlive;  // takes the lock
      GroupMemberForTest::begin_incarnation(slot(fiber.script->slot));
      return;
    case Kind::kGive: {
      const auto bytes = operation.bytes == 0 ? fiber.granted_bytes : static_cast<int64_t>(operation.bytes);
      fiber.granted_bytes -= bytes;
      member.change(0, -bytes);
      return;
    }
    case Kind::kWait:
      fiber.ticket = member.begin_wait(0, operation.bytes);
      return;
    case Kind::kEndWait:
      member.end_wait(0);
      fiber.ticket = 0;
      return;
    case Kind::kTry:
      answer = member.try_reserve(0, operation.bytes, GPUCAP_WIRE_NO_LIMIT, fiber.ticket);
      break;
    case Kind::kCareful:
      fiber.wanted_bytes = static_cast<int64_t>(operation.bytes);
      fiber.was_full = held_on_the_card() + fiber.wanted_bytes > scenario_.limit_bytes;
      fiber.rounds = 0;
      answer = member.try_reserve_carefully(0, operation.bytes, GPUCAP_WIRE_NO_LIMIT, fiber.ticket);
      fiber.wanted_bytes = -1;
      if (answer == Answer::kNoRoom && !fiber.was_full && complaint_.empty())
        complaint_ =
            "a careful call for " + std::to_string(operation.bytes) + " found no room, though there always was";
      break;
  }
  if (answer != Answer::kGranted) return;
  fiber.granted_bytes += static_cast<int64_t>(operation.bytes);
  ++granted_count_;
}

GroupLife GroupMember::life_of(uint32_t number) const { return world->life_of(number); }
uint64_t monotonic_now_ns() { return world->now_ns(); }

}  // namespace gpucap::wire

extern "C" {
void gpucap_test_step(const char*) {}
void gpucap_test_access(const void* word, unsigned bytes) { gpucap::wire::world->before_access(word, bytes); }

int nanosleep(const timespec* time, timespec*) {
  if (gpucap::wire::world != nullptr) gpucap::wire::world->before_rest(time->tv_nsec);
  return 0;
}
int sched_yield() noexcept {
  if (gpucap::wire::world != nullptr) gpucap::wire::world->before_rest(0);
  return 0;
}
}
