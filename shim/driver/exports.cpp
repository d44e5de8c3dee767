// The bodies that programs call instead of the driver's. No logic here: each hands the real call to the verb of its
// row.
#include "shim/driver/exports.h"

#include "shim/driver/array.h"
#include "shim/driver/call.h"
#include "shim/driver/context.h"
#include "shim/driver/first_uses.h"
#include "shim/driver/graph.h"
#include "shim/driver/info.h"
#include "shim/driver/linear.h"
#include "shim/driver/look.h"
#include "shim/driver/pointers.h"
#include "shim/driver/pool.h"
#include "shim/driver/proc_address.h"
#include "shim/driver/undoable.h"
#include "shim/driver/vmm.h"

namespace gpucap::driver {

#define GPUCAP_HOOK(name, params, args, role, verb)                                 \
  extern "C" GPUCAP_EXPORT CUresult CUDAAPI name params {                           \
    const Call call(Api::k_##name, [&]() -> CUresult { return real().name args; }); \
    if (Role::role == Role::kCharge) ++thread_words.charging_calls;                 \
    return verb;                                                                    \
  }                                                                                 \
  __asm__(".symver " #name ", " #name "@GPUCAP");  // see shim/exports.map
#include "shim/driver/hook_table.inc"
#undef GPUCAP_HOOK

}  // namespace gpucap::driver
