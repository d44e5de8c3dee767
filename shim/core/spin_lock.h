// A lock for a few dozen nanoseconds of work: never held across a driver call, a system call or a log line. Zero bytes
// are an unlocked lock. It has no owner and nothing to destroy; a forked child never takes one (it is inert, see
// process/).
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace gpucap::core {

class SpinLock {
 public:
  void lock() {
    if (word_.exchange(1, std::memory_order_acquire) != 0) [[unlikely]]
      wait();
  }
  void unlock() { word_.store(0, std::memory_order_release); }

 private:
  static constexpr int kSpins = 200;
  __attribute__((cold, noinline)) void wait() {
    int tries = 0;
    do {
      while (word_.load(std::memory_order_relaxed) != 0) {
        if (++tries > kSpins) {
          std::this_thread::yield();  // the holder was preempted
          tries = 0;
        }
        pause();
      }
    } while (word_.exchange(1, std::memory_order_acquire) != 0);
  }
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  std::atomic<uint32_t> word_{0};
};

class SpinGuard {
 public:
  explicit SpinGuard(SpinLock& lock) : lock_(lock) { lock_.lock(); }
  ~SpinGuard() { lock_.unlock(); }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;

 private:
  SpinLock& lock_;
};

}  // namespace gpucap::core
