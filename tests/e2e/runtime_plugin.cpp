// A library linked with another runtime than its program, as Python's packages bring their own.
#include "tests/e2e/runtime_user.h"

extern "C" __attribute__((visibility("default"))) void plugin_user(RuntimeUser* user) { *user = user_here(); }
