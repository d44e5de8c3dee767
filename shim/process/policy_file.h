// /etc/gpucap.conf as it concerns this process: read once, with the configuration. See shim/core/policy.h for what its
// lines mean. No malloc; nothing is printed here.
#pragma once

#include "shim/process/config.h"

namespace gpucap {

// Fills config->policy, and config->group_policy for the group that the process chose itself. Complains where the file
// cannot be read or closes the policy for this user.
void read_policy_file(Config* config);

}  // namespace gpucap
