// The driver's state and cuInit. See driver.h.
#include "tests/fake_cuda/driver.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "tests/fake_cuda/cards.h"
#include "tests/fake_cuda/context.h"
#include "tests/fake_cuda/pool.h"
#include "tests/fake_cuda/proc_rows.h"

namespace fake {
namespace {

// Mirrors driver().pid, readable without the lock.
std::atomic<pid_t> initialised_by{0};

CUresult initialise(Driver& driver, unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (driver.initialised) return CUDA_SUCCESS;
  if (const char* delay = std::getenv("FAKE_CUDA_INIT_MS")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(delay)));
  }
  const std::vector<int> visible = visible_devices();
  if (visible.empty()) return CUDA_ERROR_NO_DEVICE;
  if (!driver.truth.open() || !driver.truth.claim()) return CUDA_ERROR_OPERATING_SYSTEM;
  driver.memory_bytes = memory_bytes_of_a_card();
  for (const int physical : visible) {
    auto& device = *driver.devices.emplace_back(std::make_unique<Device>());
    device.physical = physical;
    const int ordinal = static_cast<int>(driver.devices.size()) - 1;
    device.default_pool = make_pool(driver, ordinal, PoolMemory::kDevice, 0);
    device.current_pool = device.default_pool;
  }
  driver.pid = ::getpid();
  driver.initialised = true;
  initialised_by = driver.pid;
  return CUDA_SUCCESS;
}

}  // namespace

Driver& driver() {
  static Driver& the = *new Driver;
  return the;
}

bool is_forked_child() {
  const pid_t pid = initialised_by.load();
  return pid != 0 && pid != ::getpid();
}

bool may_be_used() { return initialised_by.load() != 0 && !is_forked_child(); }

bool is_met(Need need, CUresult* result) {
  if (need != Need::kContext) return true;
  Context* const context = current_context();
  if (context == nullptr) {
    *result = CUDA_ERROR_INVALID_CONTEXT;
  } else if (driver().contexts.count(context) == 0) {
    *result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  } else {
    return true;
  }
  return false;
}

Range* Driver::find_range(uint64_t address, uint64_t* base) {
  auto next = ranges.upper_bound(address);
  if (next == ranges.begin()) return nullptr;
  --next;
  if (address - next->first >= std::max<uint64_t>(next->second.bytes, 1)) return nullptr;
  *base = next->first;
  return &next->second;
}

std::vector<int> visible_devices() {
  std::vector<int> result;
  const char* const text = std::getenv("CUDA_VISIBLE_DEVICES");
  if (text == nullptr) {
    for (int i = 0; i < device_count(); ++i) result.push_back(i);
    return result;
  }
  std::string rest = text;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string item = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    const int physical = find_card(item);
    if (physical < 0) break;  // as the real one: what follows the first wrong entry is invisible
    for (const int seen : result) {
      if (seen == physical) return {};
    }
    result.push_back(physical);
  }
  return result;
}

}  // namespace fake

CUresult cuInit(unsigned int flags) {
  using namespace fake;
  // Two calls at once must not both sleep through FAKE_CUDA_INIT_MS, hence under the lock, but never in a forked child.
  if (is_forked_child()) {
    log_call("cuInit", CUDA_ERROR_NOT_INITIALIZED);
    return CUDA_ERROR_NOT_INITIALIZED;
  }
  return enter("cuInit", Need::kNothing, [&](Driver& driver) { return initialise(driver, flags); });
}

CUresult cuDriverGetVersion(int* version) {
  using namespace fake;
  return enter("cuDriverGetVersion", Need::kNothing, [&](Driver&) {
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = kReportedVersion;
    return CUDA_SUCCESS;
  });
}
