// What is done before any refusal: memory that the driver only keeps for later goes back to the card.
#pragma once

#include "shim/driver/graph.h"
#include "shim/driver/pool.h"

namespace gpucap::driver {

// A ReclaimFunction, see process/quota.h.
inline void reclaim(Process& process, Device& device, void*) {
  graph::reclaim_graphs(device);
  pool::reclaim_pools(process, device);
}

}  // namespace gpucap::driver
