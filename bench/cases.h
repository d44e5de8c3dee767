// The workloads of driver_bench by name. A case is set up when it is made, runs as often as asked, and gives back all
// that it took when it goes. Used by one thread; the cases of many threads start their own.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gpucap::bench {

struct CaseOptions {
  uint64_t bytes = 0;        // of a pair; 0: what the case is known for
  uint64_t live = 0;         // blocks of 512 B that live meanwhile, of the same way of allocating
  uint64_t threads = 1;      // each with a stream of its own
  uint64_t fill = 0;         // blocks of 2 MiB that live meanwhile
  double fill_to_share = 0;  // instead: as many as bring what cuMemGetInfo says is used to this share of the total
  CUcontext context = nullptr;
};

class Case {
 public:
  Case() = default;
  virtual ~Case() = default;
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;
  // Does so many operations (each thread) and answers how long that took. Waits for the card after the clock stopped.
  virtual uint64_t run_ns(uint64_t operations) = 0;
};

struct CaseKind {
  const char* name;
  const char* what;
  std::unique_ptr<Case> (*make)(const CaseOptions& options);
};
const std::vector<CaseKind>& all_cases();

// Blocks that only lie there.
class Ballast {
 public:
  Ballast(uint64_t count, uint64_t bytes, CUstream stream, bool stream_ordered);
  ~Ballast();
  Ballast(const Ballast&) = delete;
  Ballast& operator=(const Ballast&) = delete;
  // One block more; false if there is no room.
  bool add();
  [[nodiscard]] uint64_t size() const { return blocks_.size(); }

 private:
  uint64_t bytes_;
  CUstream stream_;
  bool stream_ordered_;
  std::vector<CUdeviceptr> blocks_;
};

// `fill` and `fill_to_share` of the options; nothing if neither is set.
std::unique_ptr<Ballast> fill_card(const CaseOptions& options);

}  // namespace gpucap::bench
