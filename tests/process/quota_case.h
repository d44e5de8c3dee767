// A live process with one device under a cap, and allocations as the hooks make them. Times are real; where a case
// depends on being within 10 ms of a look, looks_while_fresh() tries again when the machine was slower than that.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "shim/process/clock.h"
#include "shim/process/quota.h"
#include "tests/process/fake_card.h"

namespace gpucap::test {

class QuotaCase : public ProcessCase {
 protected:
  void begin(const char* limit) {
    process_ = &start(limit);
    device_ = process_->device(0);
    process_->activate(*device_);
    look(*process_, *device_, true);
  }
  Verdict ask(uint64_t bytes) { return reserve(*process_, *device_, bytes); }
  // A whole allocation as the hooks do it; false if refused.
  bool take(uint64_t bytes, gpucap_kind kind = GPUCAP_KIND_LINEAR) {
    if (ask(bytes) != Verdict::kGranted) return false;
    begin_flight(*device_);
    if (kind != GPUCAP_KIND_MANAGED) FakeCard::truth_bytes += static_cast<int64_t>(bytes);
    settle(*device_, kind, bytes, bytes);
    end_flight(*device_);
    return true;
  }
  void give(uint64_t bytes) {
    begin_flight(*device_);
    FakeCard::truth_bytes -= static_cast<int64_t>(bytes);
    charge(*device_, GPUCAP_KIND_LINEAR, -static_cast<int64_t>(bytes));
    end_flight(*device_);
  }
  // Runs `step` right after a look and returns how often it looked itself; again if it took too long to mean anything.
  template <class Prepare, class Step>
  int looks_while_fresh(Prepare prepare, Step step) {
    for (int tries = 0; tries < 200; ++tries) {
      look(*process_, *device_, true);
      prepare();
      const int before = FakeCard::looks;
      const uint64_t looked_at = device_->looked_at_ns;
      step();
      if (monotonic_ns() - looked_at < 9'000'000) return FakeCard::looks - before;
    }
    ADD_FAILURE() << "this machine never ran a few lines within 9 ms";
    return -1;
  }
  template <class Step>
  int looks_while_fresh(Step step) {
    return looks_while_fresh([] {}, step);
  }
  static void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }
  uint64_t used() const { return static_cast<uint64_t>(device_->ledger.used()); }
  gpucap_device& gauge() { return *device_->gauge; }

  Process* process_ = nullptr;
  Device* device_ = nullptr;
};

}  // namespace gpucap::test
