// Asking NVML what the process really holds: see quota.h.
#include <sched.h>
#include <unistd.h>

#include <cerrno>

#include "shim/process/clock.h"
#include "shim/process/quota_parts.h"

namespace gpucap {
namespace {

constexpr uint64_t kLookInterval_ns = 10'000'000;
// NVML takes the longer, the more blocks the process has (23 us with none, 150 us with 1700 of 2 MiB; measured), so
// that looks are made rarer there: they take half a per cent of the time at most, and a tenth of one where the driver's
// share has stood still for a while.
constexpr uint64_t kLooksShare = 200, kLooksShareOfSettled = 1000;
constexpr uint64_t kLongestInterval_ns = 1'000'000'000;
// A single look may take longer because its thread was stopped in the middle: it costs at most as much as the longest
// of late, of which so much is forgotten at each look.
constexpr uint64_t kForgottenShare = 8;
constexpr uint64_t kSooner = 10;  // after an inexact look, and while there is something new
// A call that stays in the driver for long (a free that waits for a kernel) makes each wait for an exact look a vain
// one: the next comes after so many times what this one took.
constexpr uint64_t kRestAfterVainWait = 10;
constexpr int kExactTries = 50, kYields = 10;  // 8 ms in all, then go on without
// A program that has just begun something new (first launches take local memory, libraries load their kernels) is
// looked at more often, and more closely when it synchronises: it may rest right after, and nobody would look again.
constexpr uint64_t kNewThingsFor_ns = 2'000'000'000;

std::atomic<uint64_t> looks_begun{0}, looks_ended{0};

// Clocks may differ by a tick, so `then` may be a little later than `now`.
bool is_older(uint64_t then, uint64_t than, uint64_t now) { return now > then && now - then >= than; }

// How much room there is, for needs_look().
void note_room(Device& device) {
  uint64_t headroom = device.ledger.headroom();
  if (headroom != core::kNoLimit) headroom += static_cast<uint64_t>(kept_promises(device));
  if (device.group != nullptr) {
    const uint64_t room = room_in_group(device);
    if (room < headroom) headroom = room;
  }
  const int64_t committed = device.ledger.committed();
  device.committed_at_look.store(committed, std::memory_order_relaxed);
  device.look_above.store(headroom > INT64_MAX / 2 ? INT64_MAX : committed + static_cast<int64_t>(headroom / 2),
                          std::memory_order_relaxed);
}

void take_note(Process& process, Device& device, int64_t truth, int64_t driver) {
  const int64_t before = device.ledger.driver();
  set_driver_share(device, driver);
  note_room(device);
  process.telemetry().looked(device, truth, monotonic_ns());
  if (device.group != nullptr) {
    device.group->keep_alive();
    publish_group(device);
  }
  if (driver == before) return;
  device.driver_changed_at_ns.store(monotonic_ns(), std::memory_order_relaxed);
  Event event;
  event.operation = GPUCAP_OP_DRIVER;
  event.kind = GPUCAP_KIND_CONTEXT;
  event.bytes = static_cast<uint64_t>(driver < 0 ? 0 : driver);
  process.telemetry().record(device, event);
}

// What the ledger says that NVML must see, and at most may see. Kept promises stand for what is charged once the driver
// is asked, and for nothing else.
struct Expected {
  int64_t charged;
  int64_t at_most;
};
Expected expected_of(const Device& device) {
  const int64_t kept = kept_promises(device);
  const int64_t reserved = device.ledger.reserved() - kept;  // before the charges: see ledger.h
  const int64_t charged = device.ledger.committed() - device.managed_bytes.load();
  return {charged, charged + (reserved < 0 ? 0 : reserved)};
}

uint64_t within(uint64_t value, uint64_t least, uint64_t most) {
  return value < least ? least : value > most ? most : value;
}

// How long after the latest look its figures will be old.
uint64_t interval_of(const Device& device) {
  const uint64_t looked_at_ns = device.looked_at_ns.load(std::memory_order_relaxed);
  const uint64_t due_ns = device.look_due_ns.load(std::memory_order_relaxed);
  return within(due_ns - looked_at_ns, kLookInterval_ns, kLongestInterval_ns);
}

// What a look costs, given what NVML took for this one.
uint64_t cost_of(Device& device, uint64_t took_ns) {
  const uint64_t longest_ns = device.look_longest_ns.load(std::memory_order_relaxed);
  const uint64_t left_ns = longest_ns - longest_ns / kForgottenShare;
  device.look_longest_ns.store(took_ns > left_ns ? took_ns : left_ns, std::memory_order_relaxed);
  return longest_ns != 0 && longest_ns < took_ns ? longest_ns : took_ns;
}

// When the figures will be old: once what the look cost is a small share of the time. NVML's answer takes the longer,
// the more the process holds at that moment; so a quick one that a mark asked for does not put forward what a slow one
// put off, unless it found something new.
void set_due(Device& device, uint64_t looked_at_ns, uint64_t took_ns) {
  const uint64_t changed_at_ns = device.driver_changed_at_ns.load(std::memory_order_relaxed);
  const bool settled = is_older(changed_at_ns, kNewThingsFor_ns, looked_at_ns);
  const uint64_t share_ns = cost_of(device, took_ns) * (settled ? kLooksShareOfSettled : kLooksShare);
  uint64_t due_ns = looked_at_ns + within(share_ns, kLookInterval_ns, kLongestInterval_ns);
  const uint64_t put_off_ns = device.look_put_off_ns.load(std::memory_order_relaxed);
  if (put_off_ns > due_ns && changed_at_ns < looked_at_ns) due_ns = put_off_ns;
  device.look_put_off_ns.store(due_ns, std::memory_order_relaxed);
  device.look_due_ns.store(due_ns, std::memory_order_relaxed);
}

// How things stood before NVML was asked.
struct Before {
  uint64_t begun;
  bool quiet;
  Expected expected;
};

// What follows from NVML's answer. True if it is exact; otherwise the figure can only have raised the driver's share.
bool conclude(Process& process, Device& device, const Before& before, int64_t truth) {
  const Expected after = expected_of(device);
  const bool moved = process.bring_up_to_date(device);
  const bool exact = !moved && before.quiet && flights_begun(device) == before.begun;
  device.inexact.store(!exact, std::memory_order_relaxed);
  // NVML lists a process on a card only while it has a context there; memory made without one (cuMemCreate, pools) is
  // on the card all the same, and then our own books are all there is.
  const bool listed = truth != 0;
  if (exact) {
    const int64_t driver = listed ? truth - after.charged : 0;
    device.driver_exact.store(driver, std::memory_order_relaxed);
    take_note(process, device, truth, driver);
    raise_peak(device);
    return true;
  }
  // Calls were under way: the truth may hold what is only promised yet, and may lack what is charged and already freed.
  // What neither can explain is the driver's.
  const int64_t at_most_now = expected_of(device).at_most;
  const int64_t at_most = before.expected.at_most > at_most_now ? before.expected.at_most : at_most_now;
  if (truth - at_most > device.ledger.driver()) take_note(process, device, truth, truth - at_most);
  return false;
}

// One reading, under the look lock. True if it is exact, or there is none. `*was_stale` becomes true if there was a
// mark.
bool look_once(Process& process, Device& device, bool* known, bool* was_stale) {
  looks_begun.fetch_add(1);
  process.bring_up_to_date(device);
  // Whatever marked it before is in the figures that are read from here on.
  if (device.stale.exchange(false)) *was_stale = true;
  const uint64_t begun = flights_begun(device);
  const Before before = {begun, all_ended(device, begun), expected_of(device)};
  const uint64_t began_ns = monotonic_ns();
  device.looked_at_ns.store(began_ns, std::memory_order_relaxed);
  const int64_t truth = device.truth_missing.load(std::memory_order_relaxed) ? -1 : process.truth().read(device);
  const uint64_t took_ns = monotonic_ns() - began_ns;
  *known = truth >= 0;
  if (!*known) note_room(device);
  const bool done = !*known || conclude(process, device, before, truth);
  set_due(device, began_ns, took_ns);  // late: by now it is known whether there is something new
  looks_ended.fetch_add(1);
  return done;
}

// After needs_look(), which reads the coarse clock.
bool is_new_to_it(const Device& device) {
  const uint64_t changed_at_ns = device.driver_changed_at_ns.load(std::memory_order_relaxed);
  return !is_older(changed_at_ns, kNewThingsFor_ns, thread_words.coarse_ns) &&
         is_older(device.looked_at_ns.load(std::memory_order_relaxed), interval_of(device) / kSooner, monotonic_ns());
}

}  // namespace

LookTimes look_times() {
  LookTimes times;
  times.ended = looks_ended.load();  // first: one that is under way shows as such
  times.begun = looks_begun.load();
  return times;
}

bool looked_since(const LookTimes& then) { return then.begun != then.ended || looks_begun.load() != then.begun; }

bool look(Process& process, Device& device, bool exact) {
  if (!exact && !device.look_lock.try_lock()) return true;  // somebody is at it
  if (exact) device.look_lock.lock();
  const int saved = errno;
  bool known = false, was_stale = false;
  const uint64_t from_ns = monotonic_ns();
  const int most_tries = exact ? kExactTries : 1;
  for (int tries = 1; tries <= most_tries; ++tries) {
    if (tries > 1 + kYields) {
      usleep(200);
    } else if (tries > 1) {
      sched_yield();
    }
    // While calls are under way no reading is exact: NVML is asked in the end only. Until then the figures stay due, so
    // that whoever begins a request waits as well, and a quiet moment comes.
    const bool ask = tries == most_tries || all_ended(device, flights_begun(device));
    if (ask && look_once(process, device, &known, &was_stale)) break;
  }
  if (known && device.inexact.load(std::memory_order_relaxed)) {
    const uint64_t now_ns = monotonic_ns(), interval_ns = interval_of(device);
    const uint64_t rest_ns = within(kRestAfterVainWait * (now_ns - from_ns), interval_ns, kLongestInterval_ns);
    device.look_due_ns.store(
        exact ? now_ns + rest_ns : device.looked_at_ns.load(std::memory_order_relaxed) + interval_ns / kSooner,
        std::memory_order_relaxed);
    if (!exact && was_stale) mark_stale(device);  // the next request waits for an exact look
  }
  device.look_lock.unlock();
  errno = saved;
  return known;
}

void look_if_stale(Process& process, Device& device) {
  if (!device.active.load(std::memory_order_acquire) || !needs_look(device, 0)) return;
  look(process, device, false);
}

void look_at_rest(Process& process, Device& device) {
  if (!device.active.load(std::memory_order_acquire)) return;
  // After an inexact look, a moment without calls under way is the chance for an exact one.
  const bool chance = device.inexact.load(std::memory_order_relaxed) && all_ended(device, flights_begun(device));
  if (chance || needs_look(device, 0) || is_new_to_it(device)) look(process, device, false);
}

}  // namespace gpucap
