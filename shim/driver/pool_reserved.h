// What pools hold, as the driver says, and their charges brought up to it. Whoever asks holds the pool's lock, so that
// answers stay in order.
#pragma once

#include "shim/driver/pool_registry.h"

namespace gpucap::driver::pool {

enum class Answer : uint8_t { kNone, kSame, kChanged };

// Who asks how much a pool has reserved.
enum class By : uint8_t { kGrowth, kOther };

// The pool's lock is held. `time`: when it may have shrunk, if that is over now.
Answer refresh_locked(Process& process, Pool& pool, By by, const ShrinkTime* time = nullptr);

}  // namespace gpucap::driver::pool
